"""Generates a Python client from the API's description, compiles it, and makes first requests with it.

  first_request.py DESCRIPTION FOLDER URL KEY
"""

import compileall
import json
import pathlib
import sys

from openapi_python_client import generate
from openapi_python_client.config import Config, ConfigFile, MetaType
from openapi_python_client.parser.errors import ErrorLevel

description, folder, url, key = sys.argv[1:]
package = pathlib.Path(folder) / "tributary_client"
settings = ConfigFile(post_hooks=[])  # it would format the code
findings = generate(config=Config.from_sources(settings, MetaType.NONE, pathlib.Path(description), "utf-8", True, package))
for finding in findings:
    # A warning is about a kind of content that this generator cannot send or read: plain text, files, streams.
    print(f"{finding.level.name}: {finding.header} {finding.detail}", file=sys.stderr)
if any(finding.level is ErrorLevel.ERROR for finding in findings):
    sys.exit("the client cannot be generated")
if not compileall.compile_dir(package, quiet=1):
    sys.exit("the client does not compile")
sys.path.insert(0, folder)

from tributary_client import AuthenticatedClient  # noqa: E402
from tributary_client.api.channels import create_channel, list_channels  # noqa: E402
from tributary_client.api.memory import search  # noqa: E402
from tributary_client.models import AddChannel, Problem  # noqa: E402

client = AuthenticatedClient(base_url=url, token=key)
made = create_channel.sync(client=client, body=AddChannel(name="shop"))
assert not isinstance(made, Problem), made
channels = list_channels.sync(client=client).channels
found = search.sync(client=client, q="nothing that anybody wrote", k=1)
refused = list_channels.sync(client=AuthenticatedClient(base_url=url, token="trb_wrong"))
print(json.dumps({"made": made.name, "listed": [channel.name for channel in channels], "hits": len(found.hits), "refused": refused.type_}))
