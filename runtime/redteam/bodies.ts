// Bodies that no honest client sends, as data: broken JSON, JSON that is too deep or too large, wrong types at every
// place of an otherwise plausible request, and invalid transactions. Each has a name. All are made from one template
// with a payment that cannot be settled, so that a refusal is always the right answer.
import { gzipSync } from "node:zlib"
import { Keypair, xdr } from "@stellar/stellar-sdk"
import { makePayment } from "./buyer.ts"

export interface HttpBody {
  readonly name: string
  readonly body: string | Uint8Array
  readonly headers?: Record<string, string>
  /** Number of its attack, where it is not the group's. */
  readonly attack?: number
}

/** A plausible request in the spelling of `network`, signed by accounts that exist on no ledger. */
export const templateOf = async (network: string): Promise<any> =>
  (
    await makePayment({
      latestLedger: 2_000,
      payer: Keypair.random(),
      payTo: Keypair.random().publicKey(),
      amount: 10_000n,
      network,
      resourceUrl: "http://127.0.0.1/red-team"
    })
  ).body

const bytes = (...parts: ReadonlyArray<string | ReadonlyArray<number>>): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Uint8Array.from(part))))

const nested = (open: string, close: string, depth: number, core = "") =>
  open.repeat(depth) + core + close.repeat(depth)

/** Bodies that are invalid before their content matters. */
export const brokenBodies = (template: any): ReadonlyArray<HttpBody> => {
  const text = JSON.stringify(template)
  const inner = text.slice(1, -1)
  return [
    { name: "no body", body: "" },
    { name: "white space", body: " \n\t " },
    { name: "not JSON", body: "hello" },
    { name: "half of a body", body: text.slice(0, text.length >> 1) },
    { name: "a body and something after it", body: `${text}}` },
    { name: "two bodies", body: text + text },
    { name: "null", body: "null" },
    { name: "true", body: "true" },
    { name: "a number", body: "42" },
    { name: "a string", body: '"pay"' },
    { name: "an empty array", body: "[]" },
    { name: "an array of the body", body: `[${text}]` },
    { name: "an empty object", body: "{}" },
    { name: "the body inside a string", body: JSON.stringify(text) },
    { name: "single quotes", body: text.replaceAll('"', "'") },
    { name: "a comment", body: `/* pay */${text}` },
    { name: "a trailing comma", body: `{${inner},}` },
    { name: "NaN", attack: 114, body: `{"x402Version":NaN,${inner}}` },
    { name: "a number beyond every range", attack: 114, body: text.replace('"x402Version":2', '"x402Version":1e999') },
    {
      name: "a number of 5,000 digits",
      attack: 114,
      body: text.replace('"x402Version":2', `"x402Version":${"9".repeat(5_000)}`)
    },
    { name: "arrays 5,000 deep", body: nested("[", "]", 5_000) },
    { name: "objects 5,000 deep", body: nested('{"a":', "}", 5_000, "1") },
    { name: "arrays 5,000 deep, never closed", body: "[".repeat(5_000) },
    { name: "an extension 5,000 deep", body: `{"extensions":${nested("[", "]", 5_000)},${inner}}` },
    {
      name: "the payload's extensions 5,000 deep",
      body: text.replace(
        '"paymentPayload":{',
        `"paymentPayload":{"extensions":{"catalog":${nested('{"a":', "}", 5_000, "1")}},`
      )
    },
    ...strangeBodies(text)
  ]
}

/** JSON that parses, with a strange size, key or encoding. */
const strangeBodies = (text: string): ReadonlyArray<HttpBody> => {
  const inner = text.slice(1, -1)
  return [
    { name: "2 MB in one string", attack: 43, body: `{"pad":"${"x".repeat(2_000_000)}",${inner}}` },
    { name: "2 MB of white space", attack: 43, body: text + " ".repeat(2_000_000) },
    { name: "100,000 keys", body: `{${Array.from({ length: 100_000 }, (_, i) => `"k${i}":1`).join(",")},${inner}}` },
    { name: "a key given twice", attack: 114, body: `{"x402Version":2,${inner}}` },
    { name: "the requirements given twice", attack: 114, body: `{${inner},"paymentRequirements":{"amount":"1"}}` },
    { name: "__proto__ at the top", body: `{"__proto__":{"isValid":true,"success":true},${inner}}` },
    {
      name: "__proto__ in the payload",
      body: text.replace('"paymentPayload":{', '"paymentPayload":{"__proto__":{"scheme":"exact"},')
    },
    {
      name: "constructor and prototype as keys",
      body: `{"constructor":{"prototype":{"isValid":true}},"x402Version":2}`
    },
    { name: "invalid UTF-8", body: bytes('{"x402Version":2,"note":"', [0xff, 0xfe, 0xc3, 0x28], `",${inner}}`) },
    { name: "overlong UTF-8", body: bytes('{"note":"', [0xc0, 0xaf, 0xe0, 0x80, 0xaf], `",${inner}}`) },
    { name: "a lone surrogate", body: `{"note":"\\ud800",${inner}}` },
    { name: "NUL characters", body: text.replace("red-team", "red\\u0000team") },
    { name: "raw control characters in a string", body: text.replace("red-team", "red\u0001team") },
    { name: "UTF-16", body: bytes([0xff, 0xfe], [...Buffer.from(text, "utf16le")]) },
    { name: "a byte order mark and nothing", body: bytes([0xef, 0xbb, 0xbf]) },
    {
      name: "form data",
      body: "x402Version=2&paymentPayload=x",
      headers: { "content-type": "application/x-www-form-urlencoded" }
    },
    { name: "a content type of plain text", body: "hello", headers: { "content-type": "text/plain" } },
    { name: "gzip that is none", attack: 43, body: text, headers: { "content-encoding": "gzip" } },
    { name: "an unknown encoding", attack: 43, body: text, headers: { "content-encoding": "br, zstd" } },
    {
      name: "50 MB of white space in 50 KB of gzip",
      attack: 43,
      body: gzipSync(Buffer.alloc(50_000_000, " ")),
      headers: { "content-encoding": "gzip" }
    }
  ]
}

/** Values of the wrong type, or of the right type but meaningless. */
const strangers: ReadonlyArray<readonly [string, unknown]> = [
  ["null", null],
  ["true", true],
  ["zero", 0],
  ["minus one", -1],
  ["one and a half", 1.5],
  ["an empty string", ""],
  ["the word abc", "abc"],
  ["a string of 10,000", "x".repeat(10_000)],
  ["an empty array", []],
  ["an array of itself", [["exact"]]],
  ["an empty object", {}],
  ["an object with a toString", { toString: "x", valueOf: 1 }]
]

const paths = (value: any, prefix: ReadonlyArray<string> = []): ReadonlyArray<ReadonlyArray<string>> =>
  value === null || typeof value !== "object"
    ? [prefix]
    : [
        ...(prefix.length > 0 ? [prefix] : []),
        ...Object.keys(value).flatMap((key) => paths(value[key], [...prefix, key]))
      ]

const withValue = (template: any, path: ReadonlyArray<string>, value: unknown, remove = false): any => {
  const copy = structuredClone(template)
  let place = copy
  for (const key of path.slice(0, -1)) place = place[key]
  if (remove) delete place[path.at(-1)!]
  else place[path.at(-1)!] = value
  return copy
}

/** Each place of the template with each such value in it, and each place missing. */
export const mistypedBodies = (template: any): ReadonlyArray<HttpBody> =>
  paths(template).flatMap((path) => [
    { name: `no ${path.join(".")}`, body: JSON.stringify(withValue(template, path, undefined, true)) },
    ...strangers.map(([name, value]) => ({
      name: `${name} as ${path.join(".")}`,
      body: JSON.stringify(withValue(template, path, value))
    }))
  ])

/** Amounts that are not a positive whole number of atomic units in plain decimal digits. */
const amounts = [
  "abc",
  "",
  " ",
  "0",
  "-1",
  "+1",
  "1.0",
  "1e3",
  "0x10",
  "0b1",
  "0o7",
  "01",
  "1 ",
  " 1",
  "1_000",
  "1,000",
  "１０",
  "١",
  "Infinity",
  "NaN",
  "1n",
  "9".repeat(40),
  "9".repeat(5_000),
  String(1n << 127n),
  String(1n << 64n),
  "\u0000",
  "10000\n"
]

/** Amounts and addresses that are almost right, in both copies of the terms. */
export const senselessTerms = (template: any): ReadonlyArray<HttpBody> => {
  const both = (key: string, value: unknown) => {
    const copy = structuredClone(template)
    copy.paymentRequirements[key] = value
    copy.paymentPayload.accepted[key] = value
    return JSON.stringify(copy)
  }
  const { asset, payTo } = template.paymentRequirements
  return [
    ...amounts.map((amount) => ({
      name: `the amount ${JSON.stringify(amount).slice(0, 24)}`,
      body: both("amount", amount)
    })),
    ...[
      payTo.toLowerCase(),
      `${payTo} `,
      payTo.slice(0, -1),
      `${payTo}A`,
      payTo.replace(/^G/, "M"),
      asset,
      "GABC",
      "native",
      "\u202e"
    ].map((value) => ({ name: `the recipient ${JSON.stringify(value).slice(0, 24)}`, body: both("payTo", value) })),
    ...[asset.toLowerCase(), payTo, `${asset}:1`, "USDC", "USDC:GABC", "native"].map((value) => ({
      name: `the asset ${JSON.stringify(value).slice(0, 24)}`,
      body: both("asset", value)
    })),
    ...[0, -60, 1e-9, 1e21, 2 ** 53, "60"].map((value) => ({
      name: `the timeout ${value}`,
      body: both("maxTimeoutSeconds", value)
    })),
    ...[
      "stellar",
      ":",
      "stellar:",
      ":testnet",
      "stellar:testnet:x",
      "STELLAR:TESTNET",
      "ledger:testnet\u0000",
      "../testnet"
    ].map((value) => ({ name: `the network ${JSON.stringify(value)}`, body: both("network", value) }))
  ]
}

/** Invalid transactions, or transactions of a kind that is not a payment. */
export const senselessTransactions = (template: any): ReadonlyArray<HttpBody> => {
  const honest: string = template.paymentPayload.payload.transaction
  const raw = Buffer.from(honest, "base64")
  const put = (transaction: unknown) =>
    JSON.stringify(withValue(template, ["paymentPayload", "payload", "transaction"], transaction))
  const nestedVec = (depth: number): Buffer => {
    // An ScVal of type vec (16), present, with one element, around itself; the innermost is void (1).
    const level = Buffer.from([0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 1])
    return Buffer.concat([...Array.from({ length: depth }, () => level), Buffer.from([0, 0, 0, 1])])
  }
  // The amount, an i128 (type 10 and 16 bytes), is the last argument of the call and occurs once more in the
  // authorization.
  const amount = Buffer.concat([Buffer.from([0, 0, 0, 10]), Buffer.alloc(14), Buffer.from([0x27, 0x10])])
  const at = raw.indexOf(amount)
  const deep = (depth: number) =>
    Buffer.concat([raw.subarray(0, at), nestedVec(depth), raw.subarray(at + amount.length)]).toString("base64")
  const envelope = xdr.TransactionEnvelope.fromXdr(honest, "base64")
  return [
    { name: "an empty transaction", body: put("") },
    { name: "a transaction that is not base64", body: put("not base64!") },
    { name: "a transaction in base64url", body: put(honest.replaceAll("+", "-").replaceAll("/", "_") + "-_") },
    { name: "a transaction with white space", body: put(`${honest.slice(0, 40)}\n ${honest.slice(40)}`) },
    { name: "a transaction with too much padding", body: put(`${honest}====`) },
    { name: "a transaction in hexadecimal", body: put(raw.toString("hex")) },
    { name: "bytes after the transaction", body: put(Buffer.concat([raw, Buffer.alloc(4)]).toString("base64")) },
    { name: "one byte after the transaction", body: put(Buffer.concat([raw, Buffer.alloc(1)]).toString("base64")) },
    ...[1, 4, 40, 100, raw.length >> 1, raw.length - 4, raw.length - 1].map((length) => ({
      name: `the first ${length} bytes of the transaction`,
      body: put(raw.subarray(0, length).toString("base64"))
    })),
    ...[0, 1, 3, 4, 5, 6, 255].map((type) => ({
      name: `an envelope of type ${type}`,
      body: put(Buffer.concat([Buffer.from([0, 0, 0, type]), raw.subarray(4)]).toString("base64"))
    })),
    { name: "only ones", body: put(Buffer.alloc(400, 0xff).toString("base64")) },
    { name: "only zeros", body: put(Buffer.alloc(400).toString("base64")) },
    {
      name: "an array that claims four billion elements",
      body: put(Buffer.concat([raw.subarray(0, 72), Buffer.alloc(40, 0xff)]).toString("base64"))
    },
    ...[50, 500, 10_000].map((depth) => ({ name: `an argument ${depth} deep`, body: put(deep(depth)) })),
    { name: "a fee bump around the payment", body: put(feeBump(envelope).toXdr("base64")) },
    { name: "a transaction of 150,000 characters", body: put("A".repeat(150_000)) },
    { name: "a transaction of 1,500,000 characters", body: put("A".repeat(1_500_000)) }
  ]
}

/** The payment inside a fee bump. */
export const feeBump = (envelope: xdr.TransactionEnvelope): xdr.TransactionEnvelope => {
  if (envelope.type !== "envelopeTypeTx") throw new Error("the template is no plain transaction")
  return xdr.TransactionEnvelope.envelopeTypeTxFeeBump(
    new xdr.FeeBumpTransactionEnvelope({
      tx: new xdr.FeeBumpTransaction({
        feeSource: envelope.v1.tx.sourceAccount,
        fee: 1_000_000n,
        innerTx: xdr.FeeBumpTransactionInnerTx.envelopeTypeTx(envelope.v1),
        ext: xdr.FeeBumpTransactionExt.v0()
      }),
      signatures: []
    })
  )
}
