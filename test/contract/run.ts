// `npm run contract`: builds the settlement contracts and the loops of the vector scan, and writes each next to its
// source, as a module and as a source of the program. `npm run contract -- check` only checks that the existing files
// match their sources.
import { readFileSync, writeFileSync } from "node:fs"
import { accountFolder, accountSource, buildAccount } from "./account.ts"
import { batchFolder, batchSource, buildBatch } from "./batch.ts"
import { buildContract, contractFolder, sha256Hex, wasmSource } from "./build.ts"
import { buildDraft, drafts, draftsFolder, draftsSource } from "./drafts.ts"
import { buildLoops, loopsFolder, loopsSource } from "./vectorLoops.ts"

const wasm = await buildContract()
const batch = await buildBatch()
const account = await buildAccount()
const loops = await buildLoops()
const modules = await Promise.all(drafts.map(async (draft) => [draft, await buildDraft(draft)] as const))
const files: ReadonlyArray<readonly [path: string, content: Uint8Array]> = [
  [`${contractFolder}settle.wasm`, wasm],
  [`${contractFolder}settleWasm.ts`, Buffer.from(wasmSource(wasm))],
  [`${batchFolder}batch.wasm`, batch],
  [`${batchFolder}batchWasm.ts`, Buffer.from(batchSource(batch))],
  [`${accountFolder}account.wasm`, account],
  [`${accountFolder}accountWasm.ts`, Buffer.from(accountSource(account))],
  [`${loopsFolder}vectorLoopsWasm.ts`, Buffer.from(loopsSource(loops))],
  ...modules.map(([draft, module]) => [`${draftsFolder}${draft}.wasm`, module] as const),
  [`${draftsFolder}draftWasm.ts`, Buffer.from(draftsSource(modules))]
]

if (process.argv[2] === "check") {
  const different = files.filter(([path, content]) => !readFileSync(path).equals(content))
  for (const [path] of different) console.log(`NOT what the source gives: ${path}`)
  console.log(`${sha256Hex(wasm)}: ${different.length === 0 ? "all as built" : "not as built"}`)
  process.exitCode = different.length === 0 ? 0 : 1
} else {
  for (const [path, content] of files) writeFileSync(path, content)
  const built = [["settle", wasm], ["batch", batch], ["account", account], ...modules] as const
  for (const [name, module] of built) console.log(`${name}: ${module.length} bytes, sha256 ${sha256Hex(module)}`)
}
