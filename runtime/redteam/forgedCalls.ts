// Payments whose call, terms or envelope are forged: other functions, arguments, recipients and assets; expiries,
// preconditions, resource data and encodings (attacks 12 to 30 and 98).
import { Asset, Keypair, nativeToScVal, Networks, StrKey, xdr } from "@stellar/stellar-sdk"
import { feeBump } from "./bodies.ts"
import { testnetUsdc } from "./buyer.ts"
import { address, type Crafted, exact, price } from "./crafted.ts"

const wrongFunction = (...reasons: ReadonlyArray<string>) => [`${exact}_wrong_function_name`, ...reasons]

const classicPayment = (payTo: string): xdr.Operation =>
  new xdr.Operation({
    sourceAccount: null,
    body: xdr.OperationBody.payment(
      new xdr.PaymentOp({
        destination: xdr.MuxedAccount.keyTypeEd25519(Keypair.fromPublicKey(payTo).rawPublicKey()),
        asset: Asset.native().toXdrObject(),
        amount: price
      })
    )
  })

const muxedOf = (address: string): string =>
  StrKey.encodeMed25519PublicKey(Buffer.concat([StrKey.decodeEd25519PublicKey(address), Buffer.alloc(8, 7)]))

const padded = (base64: string, bytes: number): string =>
  Buffer.concat([Buffer.from(base64, "base64"), Buffer.alloc(bytes)]).toString("base64")

const differing = (thief: Keypair) => ({
  amount: "1",
  payTo: thief.publicKey(),
  asset: "CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABSC4",
  network: "stellar:pubnet",
  scheme: "upto"
})

const changedData = (
  ext: xdr.TransactionExt,
  change: (data: xdr.SorobanTransactionData) => object
): xdr.TransactionExt => {
  if (ext.type !== "sorobanData") throw new Error("the payment has no resource data")
  return xdr.TransactionExt.sorobanData(
    new xdr.SorobanTransactionData({ ...ext.sorobanData, ...change(ext.sorobanData) })
  )
}

export const forgedCalls: ReadonlyArray<Crafted> = [
  {
    attack: 12,
    name: "two operations",
    reasons: [`${exact}_wrong_operation`],
    tamper: () => ({ operations: ([one]) => [one!, one!] })
  },
  { attack: 12, name: "no operation", reasons: [`${exact}_wrong_operation`], tamper: () => ({ operations: () => [] }) },
  {
    attack: 13,
    name: "a classic payment in place of the call",
    reasons: [`${exact}_wrong_operation`],
    tamper: ({ payTo }) => ({ operations: () => [classicPayment(payTo)] })
  },
  {
    attack: 13,
    name: "an upload of code",
    reasons: [`${exact}_wrong_operation`, `${exact}_wrong_function_name`],
    tamper: () => ({ hostFunction: () => xdr.HostFunction.hostFunctionTypeUploadContractWasm(new Uint8Array(64)) })
  },
  {
    attack: 14,
    name: "transfer_from",
    reasons: wrongFunction(),
    tamper: ({ buyer }) => ({ functionName: "transfer_from", args: (args) => [address(buyer.publicKey()), ...args] })
  },
  { attack: 14, name: "approve", reasons: wrongFunction(), tamper: () => ({ functionName: "approve" }) },
  {
    attack: 14,
    name: "burn",
    reasons: wrongFunction(),
    tamper: () => ({ functionName: "burn", args: ([from, , amount]) => [from!, amount!] })
  },
  {
    attack: 14,
    name: "a name similar to transfer",
    reasons: wrongFunction(),
    tamper: () => ({ functionName: "Transfer" })
  },
  {
    attack: 15,
    name: "a fourth argument",
    reasons: wrongFunction(),
    tamper: () => ({ args: (args) => [...args, xdr.ScVal.scvVoid()] })
  },
  { attack: 15, name: "two arguments", reasons: wrongFunction(), tamper: () => ({ args: (args) => args.slice(0, 2) }) },
  {
    attack: 15,
    name: "an amount as u128",
    tamper: () => ({ args: ([from, to]) => [from!, to!, nativeToScVal(price, { type: "u128" })] })
  },
  {
    attack: 15,
    name: "an amount as i64",
    tamper: () => ({ args: ([from, to]) => [from!, to!, nativeToScVal(price, { type: "i64" })] })
  },
  {
    attack: 15,
    name: "an amount as text",
    tamper: () => ({ args: ([from, to]) => [from!, to!, xdr.ScVal.scvString(String(price))] })
  },
  { attack: 15, name: "one unit less", reasons: [`${exact}_wrong_amount`], tamper: () => ({ amount: price - 1n }) },
  { attack: 15, name: "one unit more", reasons: [`${exact}_wrong_amount`], tamper: () => ({ amount: price + 1n }) },
  { attack: 15, name: "zero units", reasons: [`${exact}_wrong_amount`], tamper: () => ({ amount: 0n }) },
  { attack: 15, name: "a negative amount", reasons: [`${exact}_wrong_amount`], tamper: () => ({ amount: -price }) },
  {
    attack: 15,
    name: "the largest amount there is",
    reasons: [`${exact}_wrong_amount`],
    tamper: () => ({ amount: (1n << 127n) - 1n })
  },
  {
    attack: 16,
    name: "a transfer to a stranger",
    reasons: [`${exact}_wrong_recipient`],
    tamper: ({ thief }) => ({ to: thief.publicKey() })
  },
  {
    attack: 16,
    name: "a transfer to the buyer itself",
    reasons: [`${exact}_wrong_recipient`, `${exact}_self_payment`],
    tamper: ({ buyer }) => ({ to: buyer.publicKey() })
  },
  {
    attack: 16,
    name: "the buyer as recipient of its own payment",
    reasons: [`${exact}_self_payment`],
    payTo: ({ buyer }) => buyer.publicKey(),
    tamper: () => ({})
  },
  {
    attack: 17,
    name: "a transfer of native XLM",
    reasons: [`${exact}_wrong_asset`],
    tamper: () => ({ contract: Asset.native().contractId(Networks.TESTNET) })
  },
  {
    attack: 21,
    name: "an authorization that has ended",
    reasons: ["invalid_ledger_auth_expired"],
    tamper: () => ({ expiryOffset: -100 })
  },
  {
    attack: 21,
    name: "an authorization without end",
    reasons: ["invalid_exact_ledger_signature_expiration_too_far"],
    tamper: () => ({ expirationLedger: 4_000_000_000 })
  },
  {
    attack: 21,
    name: "an authorization 100 ledgers too long",
    reasons: ["invalid_exact_ledger_signature_expiration_too_far"],
    tamper: () => ({ expiryOffset: 100 })
  },
  { attack: 16, name: "a muxed recipient in the call", tamper: ({ payTo }) => ({ to: muxedOf(payTo) }) },
  { attack: 16, name: "a muxed payer in the call", tamper: ({ buyer }) => ({ from: muxedOf(buyer.publicKey()) }) },
  { attack: 16, name: "a contract as recipient of the call", tamper: () => ({ to: testnetUsdc }) },
  {
    attack: 17,
    name: "a contract that is no token, in terms and call",
    options: { asset: "CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABSC4" },
    tamper: () => ({})
  },
  {
    attack: 18,
    name: "a memo",
    tamper: () => ({ transaction: (tx) => ({ ...tx, memo: xdr.Memo.memoText("paid") }) }),
    isHarmless: true
  },
  {
    attack: 18,
    name: "time bounds that have passed",
    tamper: () => ({
      transaction: (tx) => ({
        ...tx,
        cond: xdr.Preconditions.precondTime(new xdr.TimeBounds({ minTime: 0n, maxTime: 1n }))
      })
    }),
    isHarmless: true
  },
  {
    attack: 18,
    name: "no preconditions",
    tamper: () => ({ transaction: (tx) => ({ ...tx, cond: xdr.Preconditions.precondNone() }) }),
    isHarmless: true
  },
  { attack: 19, name: "a fee bump around the payment", tamper: () => ({ envelope: feeBump }) },
  ...(["amount", "payTo", "asset", "network", "scheme"] as const).map((member): Crafted => ({
    attack: 20,
    name: `another ${member} accepted than asked`,
    tamper: ({ thief }) => ({ accepted: (terms: object) => ({ ...terms, [member]: differing(thief)[member] }) })
  })),
  ...(
    [
      ["the largest resource fee there is", () => ({ resourceFee: 2n ** 63n - 1n })],
      ["a negative resource fee", () => ({ resourceFee: -1n })],
      [
        "400 entries in the footprint",
        ({ resources }) => ({
          resources: new xdr.SorobanResources({
            ...resources,
            footprint: new xdr.LedgerFootprint({
              readOnly: Array.from({ length: 400 }, () => resources.footprint.readOnly[0]!),
              readWrite: []
            })
          })
        })
      ],
      [
        "four billion instructions and bytes",
        ({ resources }) => ({
          resources: new xdr.SorobanResources({
            ...resources,
            instructions: 0xffff_ffff,
            diskReadBytes: 0xffff_ffff,
            writeBytes: 0xffff_ffff
          })
        })
      ]
    ] as ReadonlyArray<readonly [string, (data: xdr.SorobanTransactionData) => object]>
  ).map(([name, change]): Crafted => ({
    attack: 25,
    name,
    tamper: () => ({ transaction: (tx) => ({ ...tx, ext: changedData(tx.ext, change) }) }),
    isHarmless: true
  })),
  {
    attack: 98,
    name: "no instructions at all",
    tamper: () => ({
      transaction: (tx) => ({
        ...tx,
        ext: changedData(tx.ext, ({ resources }) => ({
          resources: new xdr.SorobanResources({ ...resources, instructions: 0 })
        }))
      })
    }),
    isHarmless: true
  },
  {
    attack: 29,
    name: "a recipient that does not exist",
    payTo: () => Keypair.random().publicKey(),
    tamper: () => ({})
  },
  ...(
    [
      ["white space in the transaction", (text) => `${text.slice(0, 40)}\n ${text.slice(40)}`],
      ["the URL alphabet in the transaction", (text) => text.replaceAll("+", "-").replaceAll("/", "_")],
      ["four zero bytes after the transaction", (text) => padded(text, 4)],
      ["one zero byte after the transaction", (text) => padded(text, 1)],
      ["too much padding", (text) => `${text}====`]
    ] as ReadonlyArray<readonly [string, (text: string) => string]>
  ).map(([name, base64]): Crafted => ({ attack: 30, name, tamper: () => ({ base64 }), isHarmless: true }))
]
