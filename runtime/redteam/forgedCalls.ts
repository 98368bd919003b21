// Payments whose call, terms or envelope are forged: other functions, arguments, recipients and assets; expiries,
// preconditions, resource data and encodings (attacks 12 to 30 and 98).
import { Asset, Keypair, nativeToScVal, Networks, StrKey, xdr } from "@stellar/stellar-sdk"
import { feeBump } from "./bodies.ts"
import { testnetUsdc } from "./buyer.ts"
import { address, anyReason, type Crafted, crafted, exact, price } from "./crafted.ts"

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
  crafted(12, "two operations", [`${exact}_wrong_operation`], () => ({ operations: ([one]) => [one!, one!] })),
  crafted(12, "no operation", [`${exact}_wrong_operation`], () => ({ operations: () => [] })),
  crafted(13, "a classic payment in place of the call", [`${exact}_wrong_operation`], ({ payTo }) => ({
    operations: () => [classicPayment(payTo)]
  })),
  crafted(13, "an upload of code", [`${exact}_wrong_operation`, `${exact}_wrong_function_name`], () => ({
    hostFunction: () => xdr.HostFunction.hostFunctionTypeUploadContractWasm(new Uint8Array(64))
  })),
  crafted(14, "transfer_from", wrongFunction(), ({ buyer }) => ({
    functionName: "transfer_from",
    args: (args) => [address(buyer.publicKey()), ...args]
  })),
  crafted(14, "approve", wrongFunction(), () => ({ functionName: "approve" })),
  crafted(14, "burn", wrongFunction(), () => ({ functionName: "burn", args: ([from, , amount]) => [from!, amount!] })),
  crafted(14, "a name similar to transfer", wrongFunction(), () => ({ functionName: "Transfer" })),
  crafted(15, "a fourth argument", wrongFunction(), () => ({ args: (args) => [...args, xdr.ScVal.scvVoid()] })),
  crafted(15, "two arguments", wrongFunction(), () => ({ args: (args) => args.slice(0, 2) })),
  crafted(15, "an amount as u128", anyReason, () => ({
    args: ([from, to]) => [from!, to!, nativeToScVal(price, { type: "u128" })]
  })),
  crafted(15, "an amount as i64", anyReason, () => ({
    args: ([from, to]) => [from!, to!, nativeToScVal(price, { type: "i64" })]
  })),
  crafted(15, "an amount as text", anyReason, () => ({
    args: ([from, to]) => [from!, to!, xdr.ScVal.scvString(String(price))]
  })),
  crafted(15, "one unit less", [`${exact}_wrong_amount`], () => ({ amount: price - 1n })),
  crafted(15, "one unit more", [`${exact}_wrong_amount`], () => ({ amount: price + 1n })),
  crafted(15, "zero units", [`${exact}_wrong_amount`], () => ({ amount: 0n })),
  crafted(15, "a negative amount", [`${exact}_wrong_amount`], () => ({ amount: -price })),
  crafted(15, "the largest amount there is", [`${exact}_wrong_amount`], () => ({ amount: (1n << 127n) - 1n })),
  crafted(16, "a transfer to a stranger", [`${exact}_wrong_recipient`], ({ thief }) => ({ to: thief.publicKey() })),
  crafted(16, "a transfer to the buyer itself", [`${exact}_wrong_recipient`, `${exact}_self_payment`], ({ buyer }) => ({
    to: buyer.publicKey()
  })),
  {
    attack: 16,
    name: "the buyer as recipient of its own payment",
    reasons: [`${exact}_self_payment`],
    payTo: ({ buyer }) => buyer.publicKey(),
    tamper: () => ({})
  },
  crafted(17, "a transfer of native XLM", [`${exact}_wrong_asset`], () => ({
    contract: Asset.native().contractId(Networks.TESTNET)
  })),
  crafted(21, "an authorization that has ended", ["invalid_ledger_auth_expired"], () => ({ expiryOffset: -100 })),
  crafted(21, "an authorization without end", ["invalid_exact_ledger_signature_expiration_too_far"], () => ({
    expirationLedger: 4_000_000_000
  })),
  crafted(21, "an authorization 100 ledgers too long", ["invalid_exact_ledger_signature_expiration_too_far"], () => ({
    expiryOffset: 100
  })),
  crafted(16, "a muxed recipient in the call", anyReason, ({ payTo }) => ({ to: muxedOf(payTo) })),
  crafted(16, "a muxed payer in the call", anyReason, ({ buyer }) => ({ from: muxedOf(buyer.publicKey()) })),
  crafted(16, "a contract as recipient of the call", anyReason, () => ({ to: testnetUsdc })),
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
  crafted(19, "a fee bump around the payment", anyReason, () => ({ envelope: feeBump })),
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
