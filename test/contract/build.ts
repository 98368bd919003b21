// Builds the settlement contract from its source: AssemblyScript compiled without a runtime, restricted to the opcodes
// that the network runs, followed by the sections that the network reads. The build is reproducible on every machine; a
// test builds it again and compares the bytes with the wasm next to the source.
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { main } from "assemblyscript/asc"
import { customSections } from "./sections.ts"

export const contractFolder = fileURLToPath(new URL("../../plugins/x402-upto/contract/", import.meta.url))

/** Only the first version of WebAssembly and no library of the language: the contract contains no other code. */
const options = [
  "--runtime",
  "stub",
  "--noAssert",
  "-Oz",
  "--converge",
  "--initialMemory",
  "1",
  "--maximumMemory",
  "1",
  ...["bulk-memory", "sign-extension", "nontrapping-f2i", "mutable-globals"].flatMap((feature) => [
    "--disable",
    feature
  ])
]

/** Compiles one source to a module. */
export const compile = async (source: string, options: ReadonlyArray<string>): Promise<Uint8Array> => {
  let module: Uint8Array | undefined
  let messages = ""
  const { error } = await main(["source.ts", "--outFile", "module.wasm", ...options], {
    readFile: (name) => (name === "source.ts" ? source : null),
    writeFile: (_name, contents) => {
      module = contents as Uint8Array
    },
    listFiles: () => [],
    stderr: {
      write: (text: string) => {
        messages += text
      }
    }
  })
  if (error !== null || module === undefined) throw new Error(`the source does not build: ${messages}`)
  return module
}

/** The contract in its deployed form, with the settlement contract's sections unless others are given. */
export const buildContract = async (
  source: string = readFileSync(`${contractFolder}settle.as`, "utf8"),
  sections: Uint8Array = customSections()
): Promise<Uint8Array> => Uint8Array.from([...(await compile(source, options)), ...sections])

export const sha256Hex = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

/** A module's base64 as lines of a source. */
export const wasmLines = (wasm: Uint8Array, indent: string): string =>
  (
    Buffer.from(wasm)
      .toString("base64")
      .match(/.{1,100}/g) ?? []
  )
    .map((line) => `${indent}"${line}"`)
    .join(",\n")

/** The module as a source of the program, which deploys it to ledgers that do not have it yet. */
export const wasmSource = (wasm: Uint8Array): string => {
  const heading =
    "// The settlement contract in its deployed form, built from settle.as by npm run contract; not to be edited. " +
    "settle.wasm"
  return `${heading}
// has the same bytes. Its code has not been audited.

/** sha256 of the module: the name of its code on every ledger. */
export const wasmHash = "${sha256Hex(wasm)}"

/** The module in base64. */
export const wasmBase64 = [
${wasmLines(wasm, "  ")}
].join("")
`
}
