// The loops of the vector scan: no contract, but compiled by the same tool.
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { compile, wasmLines } from "./build.ts"

export const loopsFolder = fileURLToPath(new URL("../../plugins/search-semantic/index/", import.meta.url))

const options = ["--runtime", "stub", "--noAssert", "-O3", "--enable", "simd", "--importMemory", "--initialMemory", "1"]

export const buildLoops = (): Promise<Uint8Array> =>
  compile(readFileSync(`${loopsFolder}vectorLoops.as`, "utf8"), options)

/** The module as a source of the program. */
export const loopsSource = (wasm: Uint8Array): string =>
  `// Built from vectorLoops.as by npm run contract; not to be edited.
export const loopsWasmBase64 = [
${wasmLines(wasm, "  ")}
].join("")
`
