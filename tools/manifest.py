"""Write data/manifest.json anew after a change of the data; raise DATA_VERSION in curate_inspect/sources.py with it."""

import json
from pathlib import Path

from curate_inspect.sources import DATA_VERSION, manifest_of

data = Path(__file__).parent.parent / "data"
text = json.dumps({"version": DATA_VERSION, "files": manifest_of(data)}, indent=2)
(data / "manifest.json").write_text(text + "\n", encoding="utf-8")
