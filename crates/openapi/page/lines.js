// The same call on a command line.
const lines = (() => {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const joined = (parts) => parts.filter(Boolean).join(" \\\n  ");
  const compact = (text) => {
    try {
      return JSON.stringify(JSON.parse(text));
    } catch {
      return text.trim();
    }
  };
  const headers = (pairs) => pairs.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);

  // The prefix of a message, in printf notation.
  function prefix(text) {
    const len = new TextEncoder().encode(text).length;
    const bytes = [0, len >>> 24, (len >>> 16) & 255, (len >>> 8) & 255, len & 255];
    return bytes.map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  }

  function curl({ base, method, isStream, messages, metadata, timeoutMs }) {
    const texts = messages.map(compact);
    const type = isStream ? "application/connect+json" : "application/json";
    const pairs = [["content-type", type], ...metadata];
    if (timeoutMs !== undefined) pairs.push(["connect-timeout-ms", timeoutMs]);
    const url = quoted(base + method);
    if (!isStream) return joined([`curl ${url}`, ...headers(pairs), `-d ${quoted(texts[0])}`]);
    const format = texts.map((text) => `${prefix(text)}%s`).join("");
    const printf = texts.length > 0 ? `printf '${format}' ${texts.map(quoted).join(" ")}` : "printf ''";
    return `${printf} |\n  ${joined([`curl -N ${url}`, ...headers(pairs), "--data-binary @-"])}`;
  }

  // Host and port; by default the scheme's port.
  function address(base) {
    const { protocol, hostname, port } = new URL(base);
    return `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
  }

  function grpcurl({ base, method, messages, metadata, timeoutMs }) {
    const plain = base.startsWith("https:") ? "" : " -plaintext";
    const time = timeoutMs === undefined ? "" : `-max-time ${timeoutMs / 1000}`;
    const texts = messages.map(compact).join("\n");
    return joined([`grpcurl${plain}`, time, ...headers(metadata), `-d ${quoted(texts)}`, `${address(base)} ${method}`]);
  }

  function thalweg({ base, method, messages, metadata, timeoutMs }) {
    const scheme = base.startsWith("https:") ? "https" : "http";
    const time = timeoutMs === undefined ? "" : `--timeout ${timeoutMs}ms`;
    const texts = messages.map(compact).join("\n");
    const target = `${scheme}://${address(base)}`;
    return joined([`thalweg call ${target} ${method}`, time, ...headers(metadata), `-d ${quoted(texts)}`]);
  }

  return { curl, grpcurl, "thalweg call": thalweg };
})();
