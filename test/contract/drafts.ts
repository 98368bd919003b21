// The settlement contracts of the drafts: their sources, and the interface in their sections, as in the draft. Names
// and types are the draft's, errors this project's.
import { readFileSync } from "node:fs"
import { buildContract, contractFolder, sha256Hex, wasmLines } from "./build.ts"
import { concat, errorsEntry, interfaceSections, notesSection, text } from "./sections.ts"

const type = {
  bool: { type: 1 },
  void: { type: 2 },
  u32: { type: 4 },
  u64: { type: 6 },
  i128: { type: 11 },
  address: { type: 19 },
  id: { type: 1006, bytesN: { n: 32 } },
  addresses: { type: 1002, vec: { elementType: { type: 19 } } },
  value: { type: 0 }
} as const
type TypeName = keyof typeof type
type Named = ReadonlyArray<readonly [name: string, type: TypeName]>

export const functionEntry = (name: string, doc: string, inputs: Named, output?: TypeName) => ({
  kind: 0,
  functionV0: {
    doc: text(doc),
    name: text(name),
    inputs: inputs.map(([input, of]) => ({ doc: text(""), name: text(input), type: type[of] })),
    outputs: output === undefined ? [] : [type[output]]
  }
})

/** `format` of the event's data: 1 a vector, 2 a map. */
const eventEntry = (topics: Named, data: Named, format: 1 | 2) => ({
  kind: 5,
  eventV0: {
    doc: text("One authorization has ended: the signed maximum and what was moved."),
    lib: text(""),
    name: text("upto_settled"),
    prefixTopics: [text("upto_settled")],
    params: [
      ...topics.map(([name, of]) => ({ doc: text(""), name: text(name), type: type[of], location: 1 })),
      ...data.map(([name, of]) => ({ doc: text(""), name: text(name), type: type[of], location: 0 }))
    ],
    dataFormat: format
  }
})

const doc = "Moves an amount of a signed maximum from the payer to the recipient, once. Not audited."
const isUsed = (name: string) =>
  functionEntry(
    name,
    "Whether a payer's nonce is spent.",
    [
      ["from", "address"],
      ["nonce", "id"]
    ],
    "bool"
  )

const interfaces = {
  stateless: [
    functionEntry(
      "settle",
      doc,
      [
        ["from", "address"],
        ["pay_to", "address"],
        ["asset", "address"],
        ["max_amount", "i128"],
        ["valid_after", "u64"],
        ["deadline", "u64"],
        ["expiration_ledger", "u32"],
        ["salt", "id"],
        ["auto_revoke", "bool"],
        ["amount", "i128"]
      ],
      "i128"
    )
  ],
  stateful: [
    functionEntry("settle_upto", doc, [
      ["token", "address"],
      ["from", "address"],
      ["to", "address"],
      ["facilitator", "address"],
      ["max_amount", "i128"],
      ["actual_amount", "i128"],
      ["nonce", "id"],
      ["valid_after", "u64"],
      ["deadline", "u64"],
      ["allowance_expiration_ledger", "u32"]
    ]),
    isUsed("is_nonce_used"),
    eventEntry(
      [
        ["token", "address"],
        ["from", "address"],
        ["to", "address"]
      ],
      [
        ["actual_amount", "i128"],
        ["facilitator", "address"],
        ["max_amount", "i128"],
        ["nonce", "id"]
      ],
      2
    )
  ],
  seven: [
    functionEntry("settle", doc, [
      ["token", "address"],
      ["from", "address"],
      ["to", "address"],
      ["max_amount", "i128"],
      ["expiration_ledger", "u32"],
      ["nonce", "id"],
      ["actual_amount", "i128"]
    ]),
    isUsed("is_used"),
    eventEntry(
      [],
      [
        ["from", "address"],
        ["to", "address"],
        ["max_amount", "i128"],
        ["actual_amount", "i128"],
        ["nonce", "id"]
      ],
      1
    )
  ]
} as const

export type Draft = keyof typeof interfaces
export const drafts = Object.keys(interfaces) as ReadonlyArray<Draft>
export const draftsFolder = `${contractFolder}drafts/`

/** One draft's contract in its deployed form. */
export const buildDraft = (draft: Draft): Promise<Uint8Array> =>
  buildContract(
    ["common", draft].map((name) => readFileSync(`${draftsFolder}${name}.as`, "utf8")).join("\n"),
    concat(
      interfaceSections([...interfaces[draft], errorsEntry]),
      notesSection([
        ["audited", "no"],
        ["license", "Apache-2.0"],
        ["source", `plugins/x402-upto/contract/drafts/${draft}.as`]
      ])
    )
  )

/** The modules as a source of the program, which identifies them by their hashes. */
export const draftsSource = (modules: ReadonlyArray<readonly [draft: Draft, wasm: Uint8Array]>): string => {
  const one = ([draft, wasm]: readonly [Draft, Uint8Array]) => `  ${draft}: {
    hash: "${sha256Hex(wasm)}",
    base64: [
${wasmLines(wasm, "      ")}
    ].join("")
  }`
  return `// The settlement contracts of the drafts, built from their sources by npm run contract; not to be edited.
// Their code has not been audited.

/** sha256 of each module, and the module in base64. */
export const draftWasm = {
${modules.map(one).join(",\n")}
} as const
`
}
