// Cases of each client, in a page of another origin than the bookstore's. Each case throws an error on failure.

import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { fromBinary, toBinary, create } from "@bufbuild/protobuf";
import { GrpcWebClientBase, MethodDescriptor, MethodType } from "grpc-web";

import {
  Bookstore,
  GetBookRequestSchema,
  BookSchema,
  WatchShelfRequestSchema,
  ShelfEventSchema,
} from "../gen/bookstore_pb.js";

const baseUrl = new URLSearchParams(location.search).get("bookstore");

function expect(actual, expected, what) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a} and not ${b}`);
}

const TRANSPORTS = {
  "connect, JSON": createConnectTransport({ baseUrl }),
  "connect, binary": createConnectTransport({ baseUrl, useBinaryFormat: true }),
  "connect, GET": createConnectTransport({ baseUrl, useHttpGet: true }),
  "connect, GET, binary": createConnectTransport({ baseUrl, useHttpGet: true, useBinaryFormat: true }),
  "grpc-web": createGrpcWebTransport({ baseUrl }),
};

const CASES = {
  async unary(client) {
    const { shelves } = await client.listShelves({});
    expect(shelves.slice(0, 2).map((shelf) => shelf.theme), ["rivers", "machines"], "themes");
    const book = await client.getBook({ name: "shelves/1/books/1" });
    expect([book.author, book.pages], ["Mark Twain", 624], "a book");
  },
  async error(client) {
    try {
      await client.getBook({ name: "shelves/1/books/77" });
    } catch (error) {
      const { code, rawMessage } = ConnectError.from(error);
      expect([code, rawMessage], [Code.NotFound, "there is no shelves/1/books/77"], "an error");
      return;
    }
    throw new Error("a book that is not there was found");
  },
  async changes(client) {
    const shelf = await client.createShelf({ shelf: { theme: "browsers" } });
    const book = await client.createBook({ parent: shelf.name, book: { title: "Weaving the Web" } });
    const update = { book: { name: book.name, pages: 246 }, updateMask: { paths: ["pages"] } };
    const updated = await client.updateBook(update);
    expect([updated.title, updated.pages], ["Weaving the Web", 246], "a changed book");
    await client.deleteBook({ name: book.name });
    expect((await client.listBooks({ parent: shelf.name })).books, [], "the books that are left");
  },
  async "server stream"(client) {
    const shelf = await client.createShelf({ shelf: { theme: "streams" } });
    const stop = new AbortController();
    const titles = [];
    const adding = setInterval(() => {
      client.createBook({ parent: shelf.name, book: { title: "Again" } });
    }, 20);
    try {
      for await (const { event } of client.watchShelf({ name: shelf.name }, { signal: stop.signal })) {
        titles.push(event.value.title);
        if (titles.length === 3) stop.abort();
      }
    } catch (error) {
      expect(ConnectError.from(error).code, Code.Canceled, "the end of a stream that was left");
    } finally {
      clearInterval(adding);
    }
    expect(titles, ["Again", "Again", "Again"], "what came to a shelf");
  },
  async deadline(client) {
    try {
      for await (const _ of client.watchShelf({ name: "shelves/2" }, { timeoutMs: 100 }));
    } catch (error) {
      expect(ConnectError.from(error).code, Code.DeadlineExceeded, "the end of a stream with a deadline");
      return;
    }
    throw new Error("a stream outlived its deadline");
  },
};

// Google's client uses protobuf-es messages here; it only serialises and parses them.
function method(path, type, request, responseSchema) {
  const write = (message) => toBinary(request, message);
  const read = (bytes) => fromBinary(responseSchema, bytes);
  return new MethodDescriptor(path, type, Object, Object, write, read);
}

const GET_BOOK = method("/bookstore.v1.Bookstore/GetBook", MethodType.UNARY, GetBookRequestSchema, BookSchema);
const WATCH = method(
  "/bookstore.v1.Bookstore/WatchShelf",
  MethodType.SERVER_STREAMING,
  WatchShelfRequestSchema,
  ShelfEventSchema,
);

async function googles(format) {
  const client = new GrpcWebClientBase({ format });
  const get = (name) =>
    client.unaryCall(baseUrl + GET_BOOK.getName(), create(GetBookRequestSchema, { name }), {}, GET_BOOK);
  expect((await get("shelves/2/books/1")).author, "Ada Lovelace", "a book");
  const error = await get("shelves/2/books/9").then(() => undefined, (error) => error);
  expect([error?.code, error?.message], [5, "there is no shelves/2/books/9"], "an error");
  if (format === "binary") return;
  const connect = createClient(Bookstore, TRANSPORTS["connect, JSON"]);
  const shelf = await connect.createShelf({ shelf: { theme: "text" } });
  const request = create(WatchShelfRequestSchema, { name: shelf.name });
  const stream = client.serverStreaming(baseUrl + WATCH.getName(), request, {}, WATCH);
  const adding = setInterval(() => {
    connect.createBook({ parent: shelf.name, book: { title: "By text" } });
  }, 20);
  const event = await new Promise((resolve, reject) => {
    stream.on("data", resolve);
    stream.on("error", reject);
  });
  clearInterval(adding);
  stream.cancel();
  expect(event.event.value.title, "By text", "what came to a shelf");
}

async function run() {
  const results = [];
  const attempt = async (name, call) => {
    try {
      await call();
      results.push({ name, ok: true });
    } catch (error) {
      results.push({ name, ok: false, why: String(error?.stack ?? error) });
    }
  };
  for (const [name, transport] of Object.entries(TRANSPORTS)) {
    const client = createClient(Bookstore, transport);
    for (const [what, call] of Object.entries(CASES)) await attempt(`${name}: ${what}`, () => call(client));
  }
  await attempt("Google's grpc-web, text", () => googles("text"));
  await attempt("Google's grpc-web, binary", () => googles("binary"));
  return results;
}

window.results = run();
