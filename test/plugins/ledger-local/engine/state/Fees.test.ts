import { describe, expect, it } from "vitest"
import {
  eventsFeeStroops,
  minimumInclusionFeeStroops,
  nonRefundableFeeStroops,
  rent1KbStroops,
  rentFeeStroops
} from "../../../../../plugins/ledger-local/engine/state/Fees.ts"
import { invokeHostFunction } from "../../../../../plugins/ledger-local/engine/host/Host.ts"
import { testnet, withConfigSettings } from "../../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import {
  accountOfStrKey,
  codec,
  fromLatin1,
  type Transaction,
  type TransactionEnvelope
} from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { crypto, type Key, networkId, World } from "../World.ts"

// A settlement on the public test network, 2026-08: transaction
// 37d52f31263714e2a41dd3f1bbb6e13148b178cc450ddf59e1e4d8582dc9a80a.
const settlement =
  "AAAAAgAAAABWdoF9/ZYOmVNBnhOJM4DaTJb6FU/dkHRxrIJFqiCiRgAAgYEAP0mIAAAACwAAAAEAAAAAAAAAAAAAAABqf9fJAAAAAAAAAAEAAAAAAAAAGAAAAAAAAAABUEXNXsBymnaP1a0CUFhS308Cjc6DDlrFIgm6SEg7LwEAAAAIdHJhbnNmZXIAAAADAAAAEgAAAAAAAAAAYqjQeFYdIx+QRgBXNfa5RFF9XQYOiqRtwkGd7CTuJMkAAAASAAAAAAAAAABZGy1/LOzYZLW15i28Rz04tIJDNYAx05S+BK1YvpESBgAAAAoAAAAAAAAAAAAAAAAAJiWgAAAAAQAAAAEAAAAAAAAAAGKo0HhWHSMfkEYAVzX2uURRfV0GDoqkbcJBnewk7iTJVwWFcy2UK+wAP0yVAAAAEAAAAAEAAAABAAAAEQAAAAEAAAACAAAADwAAAApwdWJsaWNfa2V5AAAAAAANAAAAIGKo0HhWHSMfkEYAVzX2uURRfV0GDoqkbcJBnewk7iTJAAAADwAAAAlzaWduYXR1cmUAAAAAAAANAAAAQI5+wltPkFID7V8JtTGnw/vSTCEoFCfSdnn6uL56ftyzxqKtAidnZ0xMOzZg1/37az6uEtxvZYu6hdRT19ZUwgsAAAAAAAAAAVBFzV7Acpp2j9WtAlBYUt9PAo3Ogw5axSIJukhIOy8BAAAACHRyYW5zZmVyAAAAAwAAABIAAAAAAAAAAGKo0HhWHSMfkEYAVzX2uURRfV0GDoqkbcJBnewk7iTJAAAAEgAAAAAAAAAAWRstfyzs2GS1teYtvEc9OLSCQzWAMdOUvgStWL6REgYAAAAKAAAAAAAAAAAAAAAAACYloAAAAAAAAAABAAAAAAAAAAIAAAAAAAAAAGKo0HhWHSMfkEYAVzX2uURRfV0GDoqkbcJBnewk7iTJAAAABgAAAAFQRc1ewHKado/VrQJQWFLfTwKNzoMOWsUiCbpISDsvAQAAABQAAAABAAAAAwAAAAEAAAAAWRstfyzs2GS1teYtvEc9OLSCQzWAMdOUvgStWL6REgYAAAABVVNEQwAAAABCPn0F8uyvv+wZKyFaPxvpau242OcCVKvjQT4CB95WsgAAAAEAAAAAYqjQeFYdIx+QRgBXNfa5RFF9XQYOiqRtwkGd7CTuJMkAAAABVVNEQwAAAABCPn0F8uyvv+wZKyFaPxvpau242OcCVKvjQT4CB95WsgAAAAYAAAAAAAAAAGKo0HhWHSMfkEYAVzX2uURRfV0GDoqkbcJBnewk7iTJAAAAFVcFhXMtlCvsAAAAAAAL2KwAAAF4AAABNAAAAAAAAIEdAAAAAaogokYAAABA2tnG9oylzGk/kUIGMSiEb8A5MDEpMvCZOY36GYHfdWfvaUMMtWJspCrcDaduL99adPILN6n630tDPIn8nNqNCA=="

const envelope = codec.TransactionEnvelope.decode(Uint8Array.from(Buffer.from(settlement, "base64")))
if (envelope.type !== 2) throw new Error("unexpected envelope")
const { tx } = envelope.v1
const data = tx.ext.v === 1 ? tx.ext.sorobanData : undefined
const body = tx.operations[0]!.body
if (body.type !== 24 || data === undefined) throw new Error("unexpected transaction")
const usdc = {
  type: 1 as const,
  alphaNum4: {
    assetCode: fromLatin1("USDC"),
    issuer: accountOfStrKey("GBBD47IF6LWK7P7MDEVSCWR7DPUWV3NY3DTQEVFL4NAT4AQH3ZLLFLA5")
  }
}

/** The ledger it was simulated on: its expiration less a hundred seconds of ledgers. */
const simulatedAt = 4_148_268

const settle = () => {
  const world = new World()
  const party = (text: string): Key => {
    const id = accountOfStrKey(text)
    return { seed: new Uint8Array(32), id, address: { type: 0, accountId: id } }
  }
  const buyer = party("GBRKRUDYKYOSGH4QIYAFONPWXFCFC7K5AYHIVJDNYJAZ33BE5YSMTS6R")
  const seller = party("GBMRWLL7FTWNQZFVWXTC3PCHHU4LJASDGWADDU4UXYCK2WF6SEJAN6TI")
  // The buyer had sent transactions before, so its account carries the extensions of a sequence bump (52 bytes more).
  const v3 = { ext: { v: 0 as const }, seqLedger: 1, seqTime: 1n }
  const v2 = { numSponsored: 0, numSponsoring: 0, signerSponsoringIDs: [], ext: { v: 3 as const, v3 } }
  world.account(buyer, 10_000_0000000n, {
    ext: { v: 1, v1: { liabilities: { buying: 0n, selling: 0n }, ext: { v: 2, v2 } } }
  })
  world.line(buyer, 10_000_000n, {}, usdc)
  world.line(seller, 0n, {}, usdc)
  world.sac(usdc, simulatedAt + 120_960)
  return invokeHostFunction({
    store: world.store,
    settings: testnet,
    ledgerSeq: simulatedAt,
    closeTime: 1_786_000_000n,
    networkId,
    source: accountOfStrKey("GBRKRUDYKYOSGH4QIYAFONPWXFCFC7K5AYHIVJDNYJAZ33BE5YSMTS6R"),
    hostFunction: body.invokeHostFunctionOp.hostFunction,
    auth: body.invokeHostFunctionOp.auth,
    access: { mode: "enforce-recording-footprint" },
    crypto
  })
}

/** The size that a simulation charges for: the largest envelope the transaction could become, padded. */
const estimatedSizeBytes = (transaction: Transaction): number => {
  const muxed = { type: 256 as const, med25519: { id: 0n, ed25519: new Uint8Array(32) } }
  const signer = {
    type: 3 as const,
    ed25519SignedPayload: { ed25519: new Uint8Array(32), payload: new Uint8Array(64) }
  }
  const largest: TransactionEnvelope = {
    type: 2,
    v1: {
      tx: {
        ...transaction,
        sourceAccount: muxed,
        cond: {
          type: 2,
          v2: {
            timeBounds: { minTime: 0n, maxTime: 0n },
            ledgerBounds: { minLedger: 0, maxLedger: 0 },
            minSeqNum: 0n,
            minSeqAge: 0n,
            minSeqLedgerGap: 0,
            extraSigners: [signer, signer]
          }
        },
        memo: { type: 3, hash: new Uint8Array(32) },
        operations: [{ sourceAccount: muxed, body }]
      },
      signatures: Array.from({ length: 20 }, () => ({ hint: new Uint8Array(4), signature: new Uint8Array(64) }))
    }
  }
  const size = codec.TransactionEnvelope.encode(largest).length
  return Math.max(size + 500, Math.floor(size * 1.1))
}

describe("a real settlement of the test network", () => {
  const result = settle()
  if (!result.ok) throw new Error(`${result.error.label} ${result.error.message}`)

  it("a real settlement has an accepted signature and the found footprint", () => {
    expect(
      codec.SorobanTransactionData.encode({ ...data, resources: { ...data.resources, footprint: result.footprint } })
    ).toEqual(codec.SorobanTransactionData.encode(data))
  })

  it("uses the reads and writes that it declared, and about its instructions", () => {
    // The RPC adds at least 50,000; it simulated at an earlier protocol, with a host that metered slightly more.
    const metered = data.resources.instructions - 50_000
    expect(Math.abs(result.instructions / metered - 1)).toBeLessThan(0.1)
    expect(result.diskReadBytes).toBe(data.resources.diskReadBytes)
    expect(result.writeBytes).toBe(data.resources.writeBytes)
  })

  it("a real settlement costs the network's 33,053 stroops", () => {
    const refundable =
      rentFeeStroops(testnet, result.rentChanges, simulatedAt) + eventsFeeStroops(testnet, result.eventsBytes)
    const fee = nonRefundableFeeStroops(testnet, data.resources, estimatedSizeBytes(tx)) + (refundable * 115n) / 100n
    expect(fee).toBe(33_053n)
    expect(data.resourceFee).toBe(33_053n)
  })
})

describe("fees", () => {
  it("the minimum fee is one base fee per operation plus the bump's", () => {
    expect(minimumInclusionFeeStroops(testnet, 1, false)).toBe(100n)
    expect(minimumInclusionFeeStroops(testnet, 1, true)).toBe(200n)
    expect(minimumInclusionFeeStroops(testnet, 3, false)).toBe(300n)
  })

  it("round every part up", () => {
    expect(eventsFeeStroops(testnet, 0)).toBe(0n)
    expect(eventsFeeStroops(testnet, 1)).toBe(5n)
    expect(eventsFeeStroops(testnet, 1_024)).toBe(5_000n)
  })

  it("the rent rate is at its floor until the target state size", () => {
    expect(rent1KbStroops(testnet.fees)).toBe(1_000n)
    expect(rent1KbStroops({ ...testnet.fees, stateSizeBytes: 4_000_000_000n })).toBe(10_000n)
    expect(rent1KbStroops({ ...testnet.fees, stateSizeBytes: 4_000_000_001n })).toBe(10_001n)
  })

  const change = {
    persistent: true,
    isCode: false,
    oldSizeBytes: 0,
    newSizeBytes: 1_024,
    oldLiveUntil: 0,
    newLiveUntil: 1_000 + 1_214
  }

  it("a new entry is charged from the current ledger, with its TTL", () => {
    // 1 KB for one denominator of ledgers is one rate; then one written entry and 48 bytes.
    expect(rentFeeStroops(testnet, [change], 1_000)).toBe(1_000n + 2_500n + 42n)
    expect(rentFeeStroops(testnet, [{ ...change, persistent: false }], 1_000)).toBe(500n + 2_500n + 42n)
    expect(rentFeeStroops(testnet, [{ ...change, isCode: true }], 1_000)).toBe(334n + 2_500n + 42n)
  })

  it("a grown entry is charged for ledgers paid at the smaller size", () => {
    const grown = { ...change, oldSizeBytes: 512, oldLiveUntil: change.newLiveUntil }
    expect(rentFeeStroops(testnet, [grown], 1_000)).toBe(500n)
    expect(rentFeeStroops(testnet, [{ ...grown, newSizeBytes: 512 }], 1_000)).toBe(0n)
  })

  it("follow the network's own configuration entries", () => {
    const changed = withConfigSettings(testnet, [
      { configSettingID: 12, liveSorobanStateSizeWindow: [4_000_000_000n, 8_000_000_000n] }
    ])
    expect(changed.fees.stateSizeBytes).toBe(6_000_000_000n)
    expect(
      withConfigSettings(testnet, [{ configSettingID: 3, contractHistoricalData: { feeHistorical1Kb: 1n } }]).fees
        .historical1KbStroops
    ).toBe(1n)
  })
})
