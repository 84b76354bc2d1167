// Connect calls with JSON within a browser's limits: requests are sent as a whole, responses are read as they arrive.
const connect = (() => {
  // Envelope: a byte of flags and four bytes of length precede the message.
  const PREFIX_LEN = 5;
  const FLAG_COMPRESSED = 1;
  const FLAG_END = 2;

  // Codes of responses without a Connect error, by HTTP status.
  const CODES = {
    400: "internal",
    401: "unauthenticated",
    403: "permission_denied",
    404: "unimplemented",
    429: "unavailable",
    502: "unavailable",
    503: "unavailable",
    504: "unavailable",
  };

  // Returns messages in envelopes as one body.
  function enveloped(texts) {
    const messages = texts.map((text) => new TextEncoder().encode(text));
    const body = new Uint8Array(messages.reduce((sum, message) => sum + PREFIX_LEN + message.length, 0));
    let at = 0;
    for (const message of messages) {
      new DataView(body.buffer).setUint32(at + 1, message.length);
      body.set(message, at + PREFIX_LEN);
      at += PREFIX_LEN + message.length;
    }
    return body;
  }

  // Yields the envelopes of a body, each once it is complete.
  async function* envelopes(body) {
    const reader = body.getReader();
    let pieces = [];
    let len = 0;
    let wanted = PREFIX_LEN;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        if (len > 0) throw new Failed("internal", "the response ends within a message");
        return;
      }
      pieces.push(value);
      len += value.length;
      if (len < wanted) continue;
      let bytes = joined(pieces, len);
      for (;;) {
        if (bytes.length < PREFIX_LEN) {
          wanted = PREFIX_LEN;
          break;
        }
        wanted = PREFIX_LEN + new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
        if (bytes.length < wanted) break;
        yield { flags: bytes[0], text: new TextDecoder().decode(bytes.subarray(PREFIX_LEN, wanted)) };
        bytes = bytes.subarray(wanted);
      }
      pieces = [bytes];
      len = bytes.length;
    }
  }

  function joined(pieces, len) {
    if (pieces.length === 1) return pieces[0];
    const bytes = new Uint8Array(len);
    let at = 0;
    for (const piece of pieces) {
      bytes.set(piece, at);
      at += piece.length;
    }
    return bytes;
  }

  class Failed extends Error {
    constructor(code, message, details = []) {
      super(message);
      Object.assign(this, { code, details });
    }
  }

  // Calls a method: `{ url, isStream, messages, metadata, timeoutMs, signal }`, where messages are JSON texts and
  // metadata are pairs. Calls `on.head(pairs)` and `on.message(text)` as they arrive; the result is the outcome: `{
  // error, trailers }`, where the error has a code, a message and details.
  async function call({ url, isStream, messages, metadata, timeoutMs, signal }, on) {
    const stop = new AbortController();
    let isLate = false;
    const late = () => {
      isLate = true;
      stop.abort();
    };
    // The server enforces the deadline, too, and usually first.
    const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs + 250);
    signal?.addEventListener("abort", () => stop.abort());
    try {
      return await made({ url, isStream, messages, metadata, timeoutMs, signal: stop.signal }, on);
    } catch (error) {
      if (error instanceof Failed) return { error, trailers: [] };
      if (isLate) return { error: new Failed("deadline_exceeded", "no response within the deadline"), trailers: [] };
      if (signal?.aborted) return { error: new Failed("canceled", "stopped by the user"), trailers: [] };
      return { error: new Failed("unavailable", String(error.message ?? error)), trailers: [] };
    } finally {
      clearTimeout(timer);
      // The rest of the response is discarded.
      stop.abort();
    }
  }

  async function made({ url, isStream, messages, metadata, timeoutMs, signal }, on) {
    const headers = new Headers();
    for (const [name, value] of metadata) {
      try {
        headers.append(name, value);
      } catch {
        throw new Failed("invalid_argument", `invalid metadata: ${name}: ${value}`);
      }
    }
    const type = isStream ? "application/connect+json" : "application/json";
    headers.set("content-type", type);
    headers.set("connect-protocol-version", "1");
    if (timeoutMs !== undefined) headers.set("connect-timeout-ms", String(timeoutMs));
    const body = isStream ? enveloped(messages) : messages[0];
    const options = { method: "POST", headers, body, signal, cache: "no-store", credentials: "same-origin" };
    const response = await fetch(url, options);
    const of = (isTrailer) =>
      [...response.headers].filter(([name]) => (!isStream && name.startsWith("trailer-")) === isTrailer);
    on.head(of(false));
    const trailers = of(true).map(([name, value]) => [name.slice("trailer-".length), value]);
    if (!response.ok) return { error: failure(response.status, await response.text()), trailers };
    const found = response.headers.get("content-type") ?? "nothing";
    if (!found.startsWith(type)) throw new Failed("unknown", `expected a response of type ${type}, found ${found}`);
    if (!isStream) {
      on.message(await response.text());
      return { error: null, trailers };
    }
    for await (const { flags, text } of envelopes(response.body)) {
      if (flags & FLAG_COMPRESSED) throw new Failed("internal", "unexpected compressed message");
      if (!(flags & FLAG_END)) {
        on.message(text);
        continue;
      }
      const { error, metadata = {} } = parsed(text);
      const trailers = Object.entries(metadata).flatMap(([name, values]) => values.map((value) => [name, value]));
      return { error: error ? failed(error) : null, trailers };
    }
    throw new Failed("internal", "the response has no end: the connection may have been cut");
  }

  function parsed(text) {
    try {
      return JSON.parse(text);
    } catch {
      throw new Failed("internal", "the end of the response is not JSON");
    }
  }

  const failed = ({ code, message, details }) => new Failed(code ?? "unknown", message ?? "", details ?? []);

  function failure(status, text) {
    try {
      const error = JSON.parse(text);
      if (typeof error.code === "string") return failed(error);
    } catch {
      // Not a Connect error.
    }
    const excerpt = text.length > 300 ? `${text.slice(0, 300)}…` : text;
    return new Failed(CODES[status] ?? "unknown", `HTTP ${status}: ${excerpt}`.trim());
  }

  return { call, enveloped, envelopes };
})();
