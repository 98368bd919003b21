// `npm run contract`: builds the settlement contract and writes it beside its source, as a module and as a source of
// the program. `npm run contract -- check` only says whether what stands there is what the source gives.
import { readFileSync, writeFileSync } from "node:fs"
import { buildContract, contractFolder, sha256Hex, wasmSource } from "./build.ts"

const wasm = await buildContract()
const files = [
  ["settle.wasm", Buffer.from(wasm)],
  ["settleWasm.ts", Buffer.from(wasmSource(wasm))]
] as const

if (process.argv[2] === "check") {
  const different = files.filter(([name, content]) => !readFileSync(contractFolder + name).equals(content))
  console.log(`${sha256Hex(wasm)}: ${different.length === 0 ? "as built" : "NOT what the source gives"}`)
  process.exitCode = different.length === 0 ? 0 : 1
} else {
  for (const [name, content] of files) writeFileSync(contractFolder + name, content)
  console.log(`${wasm.length} bytes, sha256 ${sha256Hex(wasm)}`)
}
