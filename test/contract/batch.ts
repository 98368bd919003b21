// The contract of `batch-settlement`: its sources, and the interface in its sections.
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { batchErrors } from "../../plugins/x402-batch/batchErrors.ts"
import { buildContract, sha256Hex, wasmLines } from "./build.ts"
import { concat, interfaceSections, notesSection, text } from "./sections.ts"

export const batchFolder = fileURLToPath(new URL("../../plugins/x402-batch/contract/", import.meta.url))

/** The parts of the source, in the order in which they are compiled together. */
export const batchParts = ["host", "channel", "claims", "batch"] as const

const bytesN = (n: number) => ({ type: 1006, bytesN: { n } }) as const
const named = (name: string) => ({ type: 2000, udt: { name: text(name) } }) as const
const type = {
  u32: { type: 4 },
  u64: { type: 6 },
  i128: { type: 11 },
  address: { type: 19 },
  id: bytesN(32),
  signature: bytesN(64),
  config: named("ChannelConfig"),
  state: named("ChannelState"),
  receiverState: named("ReceiverState"),
  claims: { type: 1002, vec: { elementType: named("Claim") } },
  totals: { type: 1002, vec: { elementType: named("ChannelTotal") } }
} as const
type TypeName = keyof typeof type
type Named = ReadonlyArray<readonly [name: string, type: TypeName]>

/** A vector of fixed items; its fields are numbers, and each field's name is its documentation. */
const tupleEntry = (name: string, doc: string, items: Named) => ({
  kind: 1,
  udtStructV0: {
    doc: text(doc),
    lib: text(""),
    name: text(name),
    fields: items.map(([item, of], i) => ({ doc: text(item), name: text(String(i)), type: type[of] }))
  }
})

const functionEntry = (name: string, doc: string, inputs: Named, output: TypeName) => ({
  kind: 0,
  functionV0: {
    doc: text(doc),
    name: text(name),
    inputs: inputs.map(([input, of]) => ({ doc: text(""), name: text(input), type: type[of] })),
    outputs: [type[output]]
  }
})

/** `format` of the event's data: 0 one value, 2 a map. */
const eventEntry = (name: string, topics: Named, data: Named, format: 0 | 2) => ({
  kind: 5,
  eventV0: {
    doc: text(""),
    lib: text(""),
    name: text(name),
    prefixTopics: [text(name)],
    params: [
      ...topics.map(([topic, of]) => ({ doc: text(""), name: text(topic), type: type[of], location: 1 })),
      ...data.map(([field, of]) => ({ doc: text(""), name: text(field), type: type[of], location: 0 }))
    ],
    dataFormat: format
  }
})

const types = [
  tupleEntry("ChannelConfig", "A channel's terms.", [
    ["payer", "address"],
    ["payer_authorizer", "id"],
    ["receiver", "address"],
    ["receiver_authorizer", "id"],
    ["token", "address"],
    ["withdraw_delay", "u64"],
    ["salt", "id"]
  ]),
  tupleEntry("ChannelState", "A channel's entry.", [
    ["balance", "i128"],
    ["claimed", "i128"],
    ["withdraw_requested_at", "u64"],
    ["refund_nonce", "u64"]
  ]),
  tupleEntry("ReceiverState", "What was claimed of a token, and what of it was paid.", [
    ["claimed", "i128"],
    ["settled", "i128"]
  ]),
  tupleEntry("Claim", "A voucher and what is claimed by it.", [
    ["config", "config"],
    ["max", "i128"],
    ["signature", "signature"],
    ["total", "i128"]
  ]),
  tupleEntry("ChannelTotal", "A channel that advanced.", [
    ["channel_id", "id"],
    ["total", "i128"]
  ])
]

const functions = [
  functionEntry(
    "deposit",
    "Opens a channel or tops it up by what arrives; `from` authorizes. Not audited.",
    [
      ["from", "address"],
      ["config", "config"],
      ["amount", "i128"]
    ],
    "i128"
  ),
  functionEntry(
    "claim",
    "Raises the claimed totals of channels under one receiver's authorizer, who signs.",
    [
      ["claims", "claims"],
      ["expires_at", "u64"],
      ["signature", "signature"]
    ],
    "u32"
  ),
  functionEntry(
    "settle",
    "Pays a receiver what was claimed and not yet paid.",
    [
      ["receiver", "address"],
      ["token", "address"]
    ],
    "i128"
  ),
  functionEntry(
    "refund",
    "Makes the claims, then pays the payer the amount or what is left; the receiver's authorizer signs.",
    [
      ["config", "config"],
      ["amount", "i128"],
      ["nonce", "u64"],
      ["expires_at", "u64"],
      ["signature", "signature"],
      ["claims", "claims"],
      ["claim_signature", "signature"]
    ],
    "i128"
  ),
  functionEntry("withdraw_start", "Starts the delay; the payer authorizes.", [["config", "config"]], "u64"),
  functionEntry("withdraw_end", "Pays the payer what is not claimed after the delay.", [["config", "config"]], "i128"),
  functionEntry("state", "A channel's entry.", [["channel_id", "id"]], "state"),
  functionEntry(
    "receiver_state",
    "A receiver's claims of a token.",
    [
      ["receiver", "address"],
      ["token", "address"]
    ],
    "receiverState"
  ),
  functionEntry("channel_id", "The id of a config's channel.", [["config", "config"]], "id")
]

const ofChannel: Named = [
  ["channel_id", "id"],
  ["payer", "address"]
]
const events = [
  eventEntry(
    "batch_deposited",
    ofChannel,
    [
      ["amount", "i128"],
      ["balance", "i128"],
      ["config", "config"],
      ["from", "address"]
    ],
    2
  ),
  eventEntry("batch_claimed", [["receiver_authorizer", "id"]], [["channels", "totals"]], 0),
  eventEntry(
    "batch_settled",
    [
      ["receiver", "address"],
      ["token", "address"]
    ],
    [["amount", "i128"]],
    0
  ),
  eventEntry(
    "batch_refunded",
    ofChannel,
    [
      ["amount", "i128"],
      ["balance", "i128"],
      ["nonce", "u64"]
    ],
    2
  ),
  eventEntry("batch_withdraw_started", ofChannel, [["ends_at", "u64"]], 0),
  eventEntry(
    "batch_withdraw_ended",
    ofChannel,
    [
      ["amount", "i128"],
      ["balance", "i128"]
    ],
    2
  )
]

const errorsEntry = {
  kind: 4,
  udtErrorEnumV0: {
    doc: text("In a claim, (entry + 1) * 10000 is added. Those of tokens come through."),
    lib: text(""),
    name: text("BatchError"),
    cases: Object.entries(batchErrors).map(([name, value]) => ({ doc: text(""), name: text(name), value }))
  }
}

/** The contract in its deployed form. */
export const buildBatch = (
  source: string = batchParts.map((part) => readFileSync(`${batchFolder}${part}.as`, "utf8")).join("\n")
): Promise<Uint8Array> =>
  buildContract(
    source,
    concat(
      interfaceSections([...types, ...functions, errorsEntry, ...events]),
      notesSection([
        ["audited", "no"],
        ["license", "Apache-2.0"],
        ["source", "plugins/x402-batch/contract/batch.as"]
      ])
    )
  )

const batchHeading =
  "// The batch contract in its deployed form, built from its sources by npm run contract; not to be edited. batch.wasm"

/** The module as a source of the program, which deploys it to ledgers that do not have it yet. */
export const batchSource = (wasm: Uint8Array): string =>
  `${batchHeading} has
// the same bytes. Its code has not been audited.

/** sha256 of the module: the name of its code on every ledger. */
export const batchWasmHash = "${sha256Hex(wasm)}"

/** The module in base64. */
export const batchWasmBase64 = [
${wasmLines(wasm, "  ")}
].join("")
`
