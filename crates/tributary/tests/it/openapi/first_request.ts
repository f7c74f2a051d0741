// The first requests of somebody who has generated types from openapi.json. It compiles only if the description has these routes, fields and
// problems; the compiled program prints what it was answered.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

declare const process: { argv: string[] };
const [url, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });

const added = await client.POST("/api/v1/documents", { body: { text: "Ann prefers calls on Friday mornings.", title: "About Ann" } });
if (!added.data) throw new Error(added.error.title);

const listed = await client.GET("/api/v1/documents", { params: { query: { limit: 1 } } });
if (!listed.data) throw new Error(listed.error.title);
const line: components["schemas"]["DocumentLine"] = listed.data.documents[0];

const one = await client.GET("/api/v1/documents/{id}", { params: { path: { id: added.data.id } } });
if (!one.data) throw new Error(one.error.title);

const unknown = createClient<paths>({ baseUrl: url, headers: { Authorization: "Bearer trb_wrong" } });
const refused = await unknown.GET("/api/v1/documents");
const problem: components["schemas"]["Problem"] | undefined = refused.error;

console.log(JSON.stringify({ title: line.title, text: one.data.text, refused: problem?.type }));
