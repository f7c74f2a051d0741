"""MCP's official Python client, unmodified. Prints what it found as one line of JSON.

    client.py http  URL KEY MODE     lists and calls everything over HTTP
    client.py stdio BINARY URL KEY MODE
    client.py oauth URL MODE COOKIE  lets itself in as the person with this session, then asks; MODE is dcr or the address of its document
"""
import asyncio
import json
import re
import sys
from urllib.parse import parse_qs, urlparse

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata


async def ask(client):
    tools = (await client.list_tools()).tools
    said = {
        "version": client.protocol_version,
        "server": client.server_info.name if client.server_info else None,
        "instructions": client.instructions,
        "tools": [tool.name for tool in tools],
    }
    found = await client.call_tool("search_memory", {"query": "lease in Lisbon"})
    structured = found.structured_content
    said["same"] = json.loads(found.content[0].text) == structured
    said["hits"] = [hit["title"] for hit in structured["hits"]]
    document = structured["hits"][0]["id"]
    got = await client.call_tool("get_document", {"id": document})
    said["text"] = got.structured_content["text"]
    said["sources"] = len((await client.call_tool("list_sources", {})).structured_content["sources"])
    results = (await client.call_tool("search", {"query": "lease"})).structured_content["results"]
    fetched = await client.call_tool("fetch", {"id": results[0]["id"]})
    said["fetched"] = fetched.structured_content["text"]
    wrong = await client.call_tool("get_document", {"id": "7"})
    said["refused"] = wrong.is_error
    missing = await client.call_tool("get_client", {"client": "nobody"})
    said["missing"] = missing.is_error
    if "remember" in said["tools"]:
        taken = await client.call_tool("remember", {"text": "The hedge is cut.", "name": "hedge"})
        said["change"] = taken.structured_content["change"]
    if "claim_activity" in said["tools"]:
        said["claimed"] = (await client.call_tool("claim_activity", {})).structured_content["activities"]
    resources = (await client.list_resources()).resources
    said["resources"] = len(resources)
    templates = (await client.list_resource_templates()).resource_templates
    said["templates"] = [template.uri_template for template in templates]
    read = await client.read_resource(str(resources[-1].uri))
    said["read"] = read.contents[0].text
    # A call that is cancelled does not break the connection.
    task = asyncio.ensure_future(client.call_tool("search_memory", {"query": "cancelled"}))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass
    said["after"] = len((await client.list_tools(cache_mode="refresh")).tools)
    return said


def over_http(url, http):
    return streamable_http_client(url, http_client=http)


async def by_key(url, key, mode):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=30) as http:
        async with Client(over_http(url, http), mode=mode) as client:
            return await ask(client)


async def by_stdio(binary, url, key, mode):
    env = {"TRIBUTARY_URL": url, "TRIBUTARY_KEY": key}
    async with Client(StdioServerParameters(command=binary, args=["mcp"], env=env), mode=mode) as client:
        return await ask(client)


class Memory:
    def __init__(self):
        self.tokens = self.info = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.info

    async def set_client_info(self, info):
        self.info = info


async def by_oauth(url, how, cookie):
    storage, back, said = Memory(), {}, {}

    async def go(address):
        """The person: looks at the page, and presses Allow."""
        origin = "{0.scheme}://{0.netloc}".format(urlparse(address))
        async with httpx2.AsyncClient(headers={"Cookie": cookie, "Accept": "text/html"}) as browser:
            page = await browser.get(address)
            said["page"] = page.text
            fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
            unescape = {"&amp;": "&", "&quot;": '"', "&#38;": "&", "&#34;": '"', "&#39;": "'", "&lt;": "<", "&gt;": ">"}
            for name, value in fields.items():
                for what, char in unescape.items():
                    value = value.replace(what, char)
                fields[name] = value
            fields |= {"decision": "allow", "write": "on"}
            answer = await browser.post(origin + "/assistants/authorize", data=fields, headers={"Origin": origin})
            back.update({name: values[0] for name, values in parse_qs(urlparse(answer.headers["location"]).query).items()})

    async def come_back():
        return AuthorizationCodeResult(code=back["code"], state=back.get("state"), iss=back.get("iss"))

    metadata = OAuthClientMetadata(
        client_name="Python client",
        redirect_uris=["http://127.0.0.1:8765/callback"],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        scope="read write",
    )
    document = None if how == "dcr" else how
    auth = OAuthClientProvider(url, metadata, storage, go, come_back, client_metadata_url=document)
    async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
        async with Client(over_http(url, http), mode="auto") as client:
            said |= await ask(client)
    said["client_id"] = storage.info.client_id
    said["iss"] = back.get("iss")
    said["scope"] = storage.tokens.scope
    said["refresh"] = storage.tokens.refresh_token
    said["access"] = storage.tokens.access_token
    return said


ways = {"http": by_key, "stdio": by_stdio, "oauth": by_oauth}
print(json.dumps(asyncio.run(ways[sys.argv[1]](*sys.argv[2:]))))
