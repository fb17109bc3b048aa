// The page as one file: its files are texts in the page, and each becomes an address when another one names it.
// This script takes the place of main.js in index.html.

const { texts, engine, types } = JSON.parse(document.getElementById("files").textContent);
const addresses = {};

function address(name, content = null) {
  addresses[name] ??= URL.createObjectURL(new Blob([content ?? named(texts[name])], { type: types[name.split(".").at(-1)] }));
  return addresses[name];
}

// A text with the addresses of the files that it names.
const named = (text) =>
  text
    .replace(/from "\.\/([\w.]+)"/g, (_, name) => `from "${address(name)}"`)
    .replace(/new URL\("\.\/([\w./]+)", import\.meta\.url\)/g, (_, name) => `"${address(name)}"`);

async function begin() {
  const packed = Uint8Array.from(atob(engine), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  address("aqmlab.wasm", await new Response(stream).arrayBuffer());
  await import(address("main.js"));
}

begin();
