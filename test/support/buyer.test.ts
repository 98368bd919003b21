// Compares the test buyer with the official client's payments, so that a refusal in another test is caused by the
// facilitator.
import { hash, inspectAuthEntry, Keypair, Networks, xdr, buildAuthorizationEntryPreimage } from "@stellar/stellar-sdk"
import { describe, expect, it } from "vitest"
import { makePayment, nullAccount, testnetUsdc } from "../../runtime/redteam/buyer.ts"

const payer = Keypair.random()
const payTo = Keypair.random().publicKey()
const base = { latestLedger: 1_000, payer, payTo, amount: 10_000n }

const decode = (transaction: string) => {
  const envelope = xdr.TransactionEnvelope.fromXdr(transaction, "base64")
  if (envelope.type !== "envelopeTypeTx") throw new Error("not a plain transaction")
  const body = envelope.v1.tx.operations[0]!.body
  if (body.type !== "invokeHostFunction") throw new Error("not a call")
  return { envelope: envelope.v1, tx: envelope.v1.tx, call: body.invokeHostFunctionOp }
}

describe("the test buyer", () => {
  it("sends an unsigned envelope from the zero account with five minutes' validity", async () => {
    const { envelope, tx } = decode((await makePayment(base)).transaction)
    expect(envelope.signatures).toHaveLength(0)
    expect(tx.seqNum).toBe(1n)
    expect(tx.sourceAccount.toXdrObject()).toEqual({ type: 0, ed25519: new Uint8Array(32) })
    expect(nullAccount).toHaveLength(56)
    expect(tx.operations).toHaveLength(1)
  })

  it("writes the payload's keys in the order of the official client", async () => {
    const { paymentPayload, paymentRequirements } = await makePayment({ ...base, extensions: { catalog: {} } })
    expect(Object.keys(paymentPayload)).toEqual(["x402Version", "payload", "extensions", "resource", "accepted"])
    expect(paymentPayload.accepted).toEqual(paymentRequirements)
    expect(paymentRequirements).toMatchObject({ asset: testnetUsdc, amount: "10000", payTo, network: "ledger:testnet" })
  })

  for (const credentials of ["address", "addressV2"] as const) {
    it(`signs ${credentials} credentials that verify over the standard preimage`, async () => {
      const payment = await makePayment({ ...base, maxTimeoutSeconds: 61, tamper: { credentials } })
      const entry = decode(payment.transaction).call.auth[0]!
      const info = inspectAuthEntry(entry)
      expect(info).toMatchObject({
        credentialType: credentials,
        address: payer.publicKey(),
        signatureExpirationLedger: 1_013
      })
      const preimage = buildAuthorizationEntryPreimage(entry, 1_013, Networks.TESTNET)
      expect(payer.verify(hash(preimage.toXdr()), info.signers[0]!.signatures![0]!.signature)).toBe(true)
    })
  }

  it("keeps the requirements honest when the call in the transaction is not", async () => {
    const thief = Keypair.random().publicKey()
    const payment = await makePayment({ ...base, tamper: { to: thief, amount: 1n, functionName: "approve" } })
    expect(payment.paymentRequirements).toMatchObject({ payTo, amount: "10000" })
    const { hostFunction } = decode(payment.transaction).call
    expect(
      hostFunction.type === "hostFunctionTypeInvokeContract" && String(hostFunction.invokeContract.functionName)
    ).toBe("approve")
  })

  it("changes signature, entries and envelope when a test asks for it", async () => {
    const flipped = await makePayment({ ...base, tamper: { signature: (s) => s.map((b, i) => (i === 5 ? b ^ 1 : b)) } })
    const entry = decode(flipped.transaction).call.auth[0]!
    const preimage = buildAuthorizationEntryPreimage(entry, flipped.expirationLedger, Networks.TESTNET)
    expect(payer.verify(hash(preimage.toXdr()), inspectAuthEntry(entry).signers[0]!.signatures![0]!.signature)).toBe(
      false
    )
    const twice = await makePayment({ ...base, tamper: { authEntries: ([one]) => [one!, one!] } })
    expect(decode(twice.transaction).call.auth).toHaveLength(2)
    const source = await makePayment({ ...base, tamper: { credentials: "sourceAccount" } })
    expect(inspectAuthEntry(decode(source.transaction).call.auth[0]!).credentialType).toBe("sourceAccount")
    const bytes = await makePayment({ ...base, tamper: { base64: (text) => text + "AAAA" } })
    expect(bytes.transaction.endsWith("AAAA")).toBe(true)
  })
})
