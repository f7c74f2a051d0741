// MCP's official clients for Node.js, unmodified. Prints what they found as one line of JSON.
//
//   node client.mjs 1 http  URL KEY            the 1.x line, which knows the handshake alone
//   node client.mjs 2 http  URL KEY MODE       the 2.x line; MODE is auto, legacy or a revision
//   node client.mjs 1 stdio BINARY URL KEY
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NODE_PACKAGES_DIR}/package.json`);
const [line, way, ...rest] = process.argv.slice(2);

const parts = () => {
  if (line === "1") {
    const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
    return { client: new Client({ name: "test", version: "1" }), StreamableHTTPClientTransport, StdioClientTransport };
  }
  const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
  const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");
  const mode = way === "http" ? rest[2] : rest[3];
  const negotiation = { mode: ["auto", "legacy"].includes(mode) ? mode : { pin: mode } };
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: negotiation });
  return { client, StreamableHTTPClientTransport, StdioClientTransport };
};

const { client, StreamableHTTPClientTransport, StdioClientTransport } = parts();
if (way === "http") {
  const [url, key] = rest;
  const requestInit = { headers: { Authorization: `Bearer ${key}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
} else {
  const [command, url, key] = rest;
  const env = { ...process.env, TRIBUTARY_URL: url, TRIBUTARY_KEY: key };
  await client.connect(new StdioClientTransport({ command, args: ["mcp"], env }));
}

const call = (name, args) => client.callTool({ name, arguments: args });
const said = { server: client.getServerVersion()?.name, instructions: client.getInstructions() };
said.tools = (await client.listTools()).tools.map((tool) => tool.name);
const found = await call("search_memory", { query: "lease in Lisbon" });
said.same = found.content[0].text === JSON.stringify(found.structuredContent) ||
  JSON.stringify(JSON.parse(found.content[0].text)) === JSON.stringify(found.structuredContent);
said.hits = found.structuredContent.hits.map((hit) => hit.title);
const got = await call("get_document", { id: found.structuredContent.hits[0].id });
said.text = got.structuredContent.text;
said.sources = (await call("list_sources", {})).structuredContent.sources.length;
const { results } = (await call("search", { query: "lease" })).structuredContent;
said.fetched = (await call("fetch", { id: results[0].id })).structuredContent.text;
said.refused = (await call("get_document", { id: "7" })).isError;
said.missing = (await call("get_client", { client: "nobody" })).isError;
const { resources } = await client.listResources();
said.resources = resources.length;
said.templates = (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate);
said.read = (await client.readResource({ uri: resources.at(-1).uri })).contents[0].text;
const abort = new AbortController();
const cancelled = client.callTool({ name: "search_memory", arguments: { query: "x" } }, line === "1" ? undefined : { signal: abort.signal },
  line === "1" ? { signal: abort.signal } : undefined);
abort.abort();
said.cancelled = await cancelled.then(() => false, () => true);
said.after = (await client.listTools()).tools.length;
await client.close();
console.log(JSON.stringify(said));
process.exit(0);
