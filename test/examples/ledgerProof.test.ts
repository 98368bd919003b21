// Proofs of a payment on the ledger, and cases that only resemble one: a node's pages with transactions that carry the
// authorization's bytes without spending it, nodes that lag, and nodes that contradict each other.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  Account,
  Address,
  authorizeEntry,
  Keypair,
  nativeToScVal,
  Networks,
  Operation,
  TransactionBuilder,
  xdr
} from "@stellar/stellar-sdk"
import { createServer, type Server } from "node:http"
import { ledgerProof } from "../../examples/seller/ledgerProof.mjs"
import { nameOf } from "../../examples/seller/sales.mjs"
import { signedCall } from "../../examples/seller/signedCall.mjs"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"

const payer = Keypair.random()
const payTo = Keypair.random().publicKey()
const terms = { scheme: "exact", asset: testnetUsdc, amount: "1000", payTo, maxTimeoutSeconds: 60 }
const expiry = 5_000
const nonce = -77n

const transfer = (amount: bigint, to = payTo, asset = testnetUsdc) =>
  new xdr.InvokeContractArgs({
    contractAddress: new Address(asset).toScAddress(),
    functionName: "transfer",
    args: [new Address(payer.publicKey()).toScVal(), new Address(to).toScVal(), nativeToScVal(amount, { type: "i128" })]
  })

const decimals = new xdr.InvokeContractArgs({
  contractAddress: new Address(testnetUsdc).toScAddress(),
  functionName: "decimals",
  args: []
})

const entryOf = (
  call: xdr.InvokeContractArgs,
  { by = payer, expires = expiry, number = nonce, version = 1 }: any = {}
) => {
  const credentials = new xdr.SorobanAddressCredentials({
    address: new Address(by.publicKey()).toScAddress(),
    nonce: number,
    signatureExpirationLedger: expires,
    signature: xdr.ScVal.scvVoid()
  })
  const entry = new xdr.SorobanAuthorizationEntry({
    rootInvocation: new xdr.SorobanAuthorizedInvocation({
      function: xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(call),
      subInvocations: []
    }),
    credentials:
      version === 1
        ? xdr.SorobanCredentials.sorobanCredentialsAddress(credentials)
        : xdr.SorobanCredentials.sorobanCredentialsAddressV2(credentials)
  })
  return authorizeEntry(entry, by, expires, Networks.TESTNET)
}

const build = (operation: xdr.Operation, source = Keypair.random()) =>
  new TransactionBuilder(new Account(source.publicKey(), "7"), { fee: "100", networkPassphrase: Networks.TESTNET })
    .addOperation(operation)
    .setTimeout(300)
    .build()

const invoking = (call: xdr.InvokeContractArgs, auth: Array<xdr.SorobanAuthorizationEntry>) =>
  build(Operation.invokeHostFunction({ func: xdr.HostFunction.hostFunctionTypeInvokeContract(call), auth }))

const bumped = (inner: ReturnType<typeof build>) => {
  inner.sign(payer)
  return TransactionBuilder.buildFeeBumpTransaction(Keypair.random(), "1000", inner, Networks.TESTNET)
}

interface Shown {
  readonly envelope: string
  readonly ledger?: number
  readonly status?: string
}

/** A node: its transactions, and the newest ledger of its pages. */
const startNode = async () => {
  const state = { transactions: [] as ReadonlyArray<Shown>, latest: expiry + 1, oldest: 1, health: expiry + 1 }
  const server: Server = createServer((request, response) => {
    let text = ""
    request.on("data", (chunk) => (text += chunk))
    request.on("end", () => {
      const { method } = JSON.parse(text)
      const transactions = state.transactions.map(({ envelope, ledger = expiry - 5, status = "SUCCESS" }, at) => ({
        ...{ status, ledger, envelopeXdr: envelope, txHash: String(at).padStart(64, "0") }
      }))
      const result =
        method === "getTransactions"
          ? { transactions, cursor: "1", latestLedger: state.latest, oldestLedger: state.oldest }
          : { status: "healthy", sequence: state.health, latestLedger: state.health, oldestLedger: state.oldest }
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ jsonrpc: "2.0", id: 1, result }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return { state, server, url: `http://127.0.0.1:${(server.address() as { port: number }).port}` }
}

let node: Awaited<ReturnType<typeof startNode>>
let second: typeof node
beforeAll(async () => {
  node = await startNode()
  second = await startNode()
})
afterAll(() => {
  node.server.close()
  second.server.close()
})

const show = (at: typeof node, transactions: ReadonlyArray<Shown>, more: object = {}) =>
  Object.assign(at.state, { latest: expiry + 1, oldest: 1, health: expiry + 1 }, more, { transactions })

const paymentWith = async (version = 1) => {
  const call = transfer(1_000n)
  const entry = await entryOf(call, { version })
  return { entry, payment: { accepted: terms, payload: { transaction: invoking(call, [entry]).toXDR() } } }
}

const prove = (payment: unknown, rpcUrl: string | ReadonlyArray<string> = node.url, more: object = {}) =>
  ledgerProof({ rpcUrl })(payment, { ...terms, ...more })

describe("what proves a payment", () => {
  it.each([1, 2])("is its own call by its own authorization (credentials %i)", async (version) => {
    const { entry, payment } = await paymentWith(version)
    for (const envelope of [invoking(transfer(1_000n), [entry]), bumped(invoking(transfer(1_000n), [entry]))]) {
      show(node, [{ envelope: envelope.toXDR() }])
      expect(await prove(payment)).toEqual({ transaction: "0".repeat(64) })
    }
  })

  it("is nothing else that carries its bytes", async () => {
    const { entry, payment } = await paymentWith()
    const bytes = entry.toXdr()
    const own = await entryOf(transfer(1n))
    const others = {
      "data by a stranger": build(Operation.manageData({ name: "x", value: bytes.subarray(4, 60) as never })),
      "the payer's transfer of one atom with the same nonce": invoking(transfer(1n), [own]),
      "the payer's transfer to another": invoking(transfer(1_000n, payer.publicKey()), [
        await entryOf(transfer(1_000n, payer.publicKey()))
      ]),
      "another expiry": invoking(transfer(1_000n), [await entryOf(transfer(1_000n), { expires: expiry + 1 })]),
      "another call beside the authorization, which stays unspent": invoking(transfer(1n), [own, entry]),
      "a call that needs no authorization, and leaves it unspent": invoking(decimals, [entry]),
      "the call by another authorization": invoking(transfer(1_000n), [
        await entryOf(transfer(1_000n), { number: 5n }),
        entry
      ])
    }
    for (const [name, envelope] of Object.entries(others)) {
      show(node, [{ envelope: envelope.toXDR() }])
      expect([name, await prove(payment)]).toEqual([name, undefined])
    }
    // One transfer to the seller, with two authorizations: it proves neither of the two payments.
    const [one, two] = [await entryOf(transfer(1_000n)), await entryOf(transfer(1_000n), { number: 5n })]
    show(node, [{ envelope: invoking(transfer(1_000n), [one, two]).toXDR() }])
    expect(await prove(payment)).toBeUndefined()
    // A failed transaction spends nothing.
    show(node, [{ envelope: invoking(transfer(1_000n), [entry]).toXDR(), status: "FAILED" }])
    expect(await prove(payment)).toBe("unspent")
    const other = build(Operation.manageData({ name: "x", value: "y" }))
    show(node, [{ envelope: other.toXDR() }])
    expect(await prove(payment)).toBe("unspent")
  })

  it("is a payment of the very terms", async () => {
    const { entry, payment } = await paymentWith()
    show(node, [{ envelope: invoking(transfer(1_000n), [entry]).toXDR() }])
    for (const more of [
      { amount: "999" },
      { payTo: payer.publicKey() },
      { scheme: "upto" },
      { asset: "CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC" }
    ])
      expect(await prove(payment, node.url, more)).toBeUndefined()
    expect(await prove({ payload: {} })).toBeUndefined()
    expect(await prove({ payload: { transaction: "AAAA" } })).toBeUndefined()
  })
})

describe("what proves that a payment is unspent", () => {
  it("is a page of a node that has every ledger", async () => {
    const { payment } = await paymentWith()
    show(node, [])
    expect(await prove(payment)).toBe("unspent")
    // Another of its nodes is ahead: the page's own ledger counts.
    show(node, [], { latest: expiry })
    expect(await prove(payment)).toBeUndefined()
    show(node, [], { oldest: expiry - 5 })
    expect(await prove(payment)).toBeUndefined()
  })

  it("is agreed by two endpoints where there are two", async () => {
    const { entry, payment } = await paymentWith()
    const both = [node.url, second.url]
    const envelope = invoking(transfer(1_000n), [entry]).toXDR()
    show(node, [])
    show(second, [])
    expect(await prove(payment, both)).toBe("unspent")
    show(second, [], { latest: expiry })
    expect(await prove(payment, both)).toBeUndefined()
    show(second, [{ envelope }])
    expect(await prove(payment, both)).toBeUndefined()
    show(node, [{ envelope }])
    expect(await prove(payment, both)).toEqual({ transaction: "0".repeat(64) })
    expect(await prove(payment, [node.url, "http://127.0.0.1:9"])).toBeUndefined()
    // A third that contradicts two others leaves it open.
    show(second, [])
    expect(await prove(payment, [node.url, second.url, `${second.url}/other`])).toBeUndefined()
  })
})

it("a payment has one name, whatever unsigned bytes are around its authorization", async () => {
  const { entry, payment } = await paymentWith()
  const dressed = { ...payment, payload: { transaction: invoking(transfer(1_000n), [entry]).toXDR(), more: 1 } }
  expect(dressed.payload.transaction).not.toBe(payment.payload.transaction)
  expect(nameOf(dressed)).toBe(nameOf(payment))
  const other = {
    payload: { transaction: invoking(transfer(1_000n), [await entryOf(transfer(1_000n), { number: 5n })]).toXDR() }
  }
  expect(nameOf(other)).not.toBe(nameOf(payment))
})

it("any cut of an envelope reads as nothing", async () => {
  const { payment } = await paymentWith()
  const whole = Buffer.from(payment.payload.transaction, "base64")
  expect(signedCall(whole)?.entries).toHaveLength(1)
  for (let length = 0; length < whole.length - 60; length += 7) signedCall(whole.subarray(0, length))
  for (let at = 0; at < whole.length; at += 3) {
    const broken = Buffer.from(whole)
    broken[at] = 0xff
    signedCall(broken)
  }
})
