// The custom sections of the settlement contract, which the network and its tools read: its protocol, its interface
// (the function, its errors, its event) and notes on its origin. Encoded here, because the language's compiler does not
// support them.
import { xdr } from "@stellar/stellar-sdk"

/** Ledgers of this protocol and of later ones run the contract. */
const protocol = 23

export const text = (value: string) => new xdr.XdrString(value)
const type = {
  u32: { type: 4 },
  i128: { type: 11 },
  address: { type: 19 },
  id: { type: 1006, bytesN: { n: 32 } }
} as const
type TypeName = keyof typeof type

const parameters: ReadonlyArray<readonly [name: string, type: TypeName, doc: string]> = [
  ["payer", "address", "Who pays. Signs every argument but the last, and the two calls of `approve` below it."],
  ["pay_to", "address", "Who is paid."],
  ["token", "address", "The token's contract."],
  ["max", "i128", "The most that may be moved, above zero."],
  ["valid_after", "u32", "First ledger in which this may settle."],
  ["deadline", "u32", "Last ledger in which this may settle, at most 518400 ledgers ahead."],
  ["facilitator", "address", "Who chooses the amount. Signs every argument."],
  ["settlement_id", "id", "Spent once for each payer."],
  ["actual", "i128", "What is moved, from zero to `max`. Zero calls no token."]
]

const errors: ReadonlyArray<readonly [name: string, value: number, doc: string]> = [
  ["InvalidArgument", 101, "An argument is of another type."],
  ["InvalidMaximum", 102, "The maximum is not above zero."],
  ["NegativeAmount", 103, "The amount is below zero."],
  ["ExceedsMaximum", 104, "The amount is above the maximum."],
  ["NotYetValid", 105, "The first ledger has not come."],
  ["Expired", 106, "The last ledger has passed."],
  ["DeadlineTooFar", 107, "The last ledger is too far ahead."],
  ["SameParty", 108, "Two parties that must differ are the same."],
  ["AlreadySettled", 109, "The payer's settlement id is spent."],
  ["MovedOtherwise", 110, "The token did not move the amount from the payer to the recipient."]
]

const settleEntry = {
  kind: 0,
  functionV0: {
    doc: text("Moves `actual` of a signed maximum from the payer to the recipient, once. Not audited."),
    name: text("settle"),
    inputs: parameters.map(([name, of, doc]) => ({ doc: text(doc), name: text(name), type: type[of] })),
    outputs: [type.i128]
  }
}

/** The errors of all settlement contracts of this project. */
export const errorsEntry = {
  kind: 4,
  udtErrorEnumV0: {
    doc: text("Above those of tokens, which come through."),
    lib: text(""),
    name: text("UptoError"),
    cases: errors.map(([name, value, doc]) => ({ doc: text(doc), name: text(name), value }))
  }
}

const topic = 1
const data = 0
const eventEntry = {
  kind: 5,
  eventV0: {
    doc: text("One authorization has ended: the signed maximum and what was moved."),
    lib: text(""),
    name: text("upto_settled"),
    prefixTopics: [text("upto_settled")],
    params: [
      { doc: text(""), name: text("payer"), type: type.address, location: topic },
      { doc: text(""), name: text("pay_to"), type: type.address, location: topic },
      { doc: text(""), name: text("token"), type: type.address, location: topic },
      { doc: text(""), name: text("actual"), type: type.i128, location: data },
      { doc: text(""), name: text("facilitator"), type: type.address, location: data },
      { doc: text(""), name: text("max"), type: type.i128, location: data },
      { doc: text(""), name: text("settlement_id"), type: type.id, location: data }
    ],
    dataFormat: 2
  }
}

const notes: ReadonlyArray<readonly [key: string, value: string]> = [
  ["audited", "no"],
  ["license", "Apache-2.0"],
  ["source", "plugins/x402-upto/contract/settle.as"]
]

export const concat = (...parts: ReadonlyArray<Uint8Array>): Uint8Array =>
  Uint8Array.from(parts.flatMap((part) => [...part]))

const leb = (value: number): Array<number> => (value < 128 ? [value] : [(value & 127) | 128, ...leb(value >>> 7)])
const sized = (content: Uint8Array) => concat(Uint8Array.from(leb(content.length)), content)
const section = (name: string, content: Uint8Array) =>
  concat(Uint8Array.of(0), sized(concat(sized(new TextEncoder().encode(name)), content)))

/** The required sections of a contract: its protocol, and its interface. */
export const interfaceSections = (entries: ReadonlyArray<object>): Uint8Array =>
  concat(
    section(
      "contractenvmetav0",
      xdr.ScEnvMetaEntry.schema.encode({ kind: 0, interfaceVersion: { protocol, preRelease: 0 } })
    ),
    section("contractspecv0", concat(...entries.map((entry) => xdr.ScSpecEntry.schema.encode(entry as never))))
  )

/** Notes on the origin of a contract. */
export const notesSection = (entries: ReadonlyArray<readonly [key: string, value: string]>): Uint8Array =>
  section(
    "contractmetav0",
    concat(
      ...entries.map(([key, val]) => xdr.ScMetaEntry.schema.encode({ kind: 0, v0: { key: text(key), val: text(val) } }))
    )
  )

/** The sections to append to the compiled module. */
export const customSections = (): Uint8Array =>
  concat(interfaceSections([settleEntry, errorsEntry, eventEntry]), notesSection(notes))
