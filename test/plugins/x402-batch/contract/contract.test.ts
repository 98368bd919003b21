import { readFileSync } from "node:fs"
import { beforeAll, describe, expect, it } from "vitest"
import type { HostResult } from "../../../../plugins/ledger-local/engine/host/HostResult.ts"
import { bytes, i128, readI128, u64, VOID } from "../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { latin1 } from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import * as calls from "../../../../plugins/x402-batch/batchCalls.ts"
import type { ChannelConfig } from "../../../../plugins/x402-batch/batchCodec.ts"
import { addressValue, u64Value } from "../../../../kernel/stellar/Value.ts"
import * as codec from "../../../../plugins/x402-batch/batchCodec.ts"
import { batchErrorOf, batchErrors } from "../../../../plugins/x402-batch/batchErrors.ts"
import { batchWasmBase64, batchWasmHash } from "../../../../plugins/x402-batch/contract/batchWasm.ts"
import { batchFolder, batchSource, buildBatch } from "../../../contract/batch.ts"
import { buildContract, sha256Hex } from "../../../contract/build.ts"
import {
  contractDataKey,
  errorOf,
  lineBalance,
  payee,
  payer,
  sponsor,
  stranger,
  succeeded
} from "../../ledger-local/engine/World.ts"
import { BatchWorld, engineValue, sellerKey, session, signedBy, text, textOf } from "./BatchWorld.ts"

let wasm: Uint8Array
let walletWasm: Uint8Array
beforeAll(async () => {
  wasm = await buildBatch()
  walletWasm = await buildContract(readFileSync(new URL("../../../contract/wallet.as", import.meta.url), "utf8"))
})

const done = (result: HostResult) => {
  const success = succeeded(result)
  success.changes.commit()
  return success
}

/** The name of the contract's error, with a claim's entry; the number of another contract's, or any other error. */
const refusalOf = (result: HostResult): string => {
  const code = /Contract, #(\d+)/.exec(errorOf(result))?.[1]
  if (code === undefined) return errorOf(result)
  const error = batchErrorOf(Number(code))
  if (error === undefined) return code
  return error.entry === undefined ? error.name : `${error.name} ${error.entry}`
}

const badSignature = /Crypto, InvalidInput/

/** A world with one channel of 500. */
const opened = (changes: Partial<ChannelConfig> = {}) => {
  const world = new BatchWorld(wasm)
  const config = world.config(changes)
  done(world.deposit(config, 500n))
  return { world, config }
}

const lines = (world: BatchWorld) => [lineBalance(world.store, payer), lineBalance(world.store, payee), world.held()]

describe("the module of the batch contract", () => {
  it("the module is the byte-exact build of its source", () => {
    expect(sha256Hex(wasm)).toBe(batchWasmHash)
    expect(sha256Hex(readFileSync(`${batchFolder}batch.wasm`))).toBe(batchWasmHash)
    expect(sha256Hex(Buffer.from(batchWasmBase64, "base64"))).toBe(batchWasmHash)
    expect(readFileSync(`${batchFolder}batchWasm.ts`, "utf8")).toBe(batchSource(wasm))
  })

  it("the module exports its functions and imports nothing that could upgrade, remove or create", () => {
    const module = new WebAssembly.Module(wasm as Uint8Array<ArrayBuffer>)
    const { channelId, receiverState, withdrawEnd, withdrawStart, ...rest } = calls.batchFunctions
    const names = [...Object.values(rest), channelId, receiverState, withdrawEnd, withdrawStart]
    expect(new Set(WebAssembly.Module.exports(module).map(({ name }) => name))).toEqual(new Set([...names, "memory"]))
    const imports = WebAssembly.Module.imports(module).map((entry) => `${entry.module}.${entry.name}`)
    expect(imports.filter((name) => name.startsWith("l.")).sort()).toEqual(["l.0", "l.1", "l.7", "l._"])
    expect(imports.filter((name) => name.startsWith("a.") || name.startsWith("d.")).sort()).toEqual(["a.0", "d._"])
  })

  it("the module says that it has not been audited, and has the errors of the plugin", () => {
    const module = new WebAssembly.Module(wasm as Uint8Array<ArrayBuffer>)
    const section = (name: string) => latin1(new Uint8Array(WebAssembly.Module.customSections(module, name)[0]!))
    expect(section("contractmetav0")).toMatch(/audited.*no/s)
    for (const name of Object.keys(batchErrors)) expect(section("contractspecv0")).toContain(name)
  })

  it("the contract computes the channel id that the plugin computes", () => {
    const world = new BatchWorld(wasm)
    for (const changes of [{}, { salt: "ab".repeat(32) }, { withdrawDelay: 2_592_000 }, { payer: text(stranger) }]) {
      const config = world.config(changes)
      const { returnValue } = succeeded(world.invokeBatch("channel_id", calls.withdrawArgs(config)))
      expect(returnValue).toEqual(bytes(codec.bytesOfHex(world.id(config))))
    }
  })
})

describe("a deposit", () => {
  it("a deposit opens a channel, and a second one tops it up", () => {
    const { config, world } = opened()
    expect(world.channel(config)).toEqual({ balance: 500n, totalClaimed: 0n, withdrawRequestedAt: 0, refundNonce: 0n })
    const { events, returnValue } = done(world.deposit(config, 250n))
    expect(readI128(returnValue)).toBe(250n)
    expect(world.channel(config)?.balance).toBe(750n)
    expect(lines(world)).toEqual([250n, 0n, 750n])
    expect(calls.batchEventOf(world.at.address, events.at(-1) as never)).toEqual({
      _tag: "Deposited",
      channelId: world.id(config),
      config,
      from: text(payer),
      amount: 250n,
      balance: 750n
    })
  })

  it("any account deposits for a payer; the payer gets back what is not claimed", () => {
    const world = new BatchWorld(wasm)
    world.line(stranger, 300n)
    const config = world.config()
    done(world.deposit(config, 300n, stranger))
    done(world.refund(config, 300n))
    expect(lines(world)).toEqual([1_300n, 0n, 0n])
  })

  it("a contract account deposits, is refunded and withdraws by its own rules", () => {
    const world = new BatchWorld(wasm)
    const wallet = world.deploy(walletWasm, new Uint8Array(32).fill(5))
    world.contractBalance(wallet, 1_000n)
    const owner = { ...payer, address: wallet }
    const config = world.config({ payer: textOf(wallet) })
    done(world.deposit(config, 500n, owner))
    done(world.claim([{ config, max: 100n, total: 100n }]))
    done(world.refund(config, 150n))
    done(world.withdrawStart(config, owner))
    world.closeTime += 900n
    done(world.withdrawEnd(config, owner))
    expect([world.balance(world.usd, wallet), world.held()]).toEqual([900n, 100n])
  })

  it("a deposit needs the signature of whose tokens it takes", () => {
    const world = new BatchWorld(wasm)
    expect(errorOf(world.deposit(world.config(), 500n, payer, stranger))).toMatch(/Auth/)
    const unsigned = world.invokeBatch("deposit", calls.depositArgs(text(payer), world.config(), 500n))
    expect(errorOf(unsigned)).toMatch(/Auth/)
    expect(lines(world)).toEqual([1_000n, 0n, 0n])
  })

  it.each<readonly [name: string, changes: Partial<ChannelConfig>, error: string]>([
    ["a delay below the least", { withdrawDelay: 899 }, "WithdrawDelayOutOfRange"],
    ["a delay above the most", { withdrawDelay: 2_592_001 }, "WithdrawDelayOutOfRange"],
    ["a payer that is the receiver", { receiver: text(payer) }, "SameParty"]
  ])("%s is refused", (_name, changes, error) => {
    const world = new BatchWorld(wasm)
    expect(refusalOf(world.deposit(world.config(changes), 5n))).toBe(error)
  })

  it("the least and the most delay are accepted", () => {
    for (const withdrawDelay of [900, 2_592_000]) opened({ withdrawDelay })
  })

  it("the contract itself is neither payer nor receiver", () => {
    const world = new BatchWorld(wasm)
    expect(refusalOf(world.deposit(world.config({ payer: world.at.address }), 5n))).toBe("SameParty")
    expect(refusalOf(world.deposit(world.config({ receiver: world.at.address }), 5n))).toBe("SameParty")
  })

  it("an amount is above zero and no more than is there", () => {
    const world = new BatchWorld(wasm)
    for (const amount of [0n, -1n, -(1n << 127n)])
      expect(refusalOf(world.deposit(world.config(), amount))).toBe("InvalidAmount")
    expect(refusalOf(world.deposit(world.config(), 1_001n))).toBe("10")
  })

  it("members of another type are refused", () => {
    const world = new BatchWorld(wasm)
    const good = engineValue(codec.configValue(world.config()))
    const items = good.type === 16 ? [...(good.vec ?? [])] : []
    const others = [VOID, bytes(new Uint8Array(31)), u64(1_000n), i128(5n), engineValue(addressValue(text(payer)))]
    for (let i = 0; i < 7; i++) {
      for (const other of others) {
        const isFit = [[4], [], [4], [], [4], [2], []][i]!.includes(others.indexOf(other))
        if (isFit) continue
        const args = [text(stranger), { type: 16 as const, vec: items.with(i, other) }, i128(5n)] as const
        const values = [engineValue(addressValue(args[0])), args[1], args[2]]
        expect(refusalOf(world.invoke(world.batch, "deposit", values)), `member ${i}`).toBe("InvalidArgument")
      }
    }
    const from = engineValue(addressValue(text(payer)))
    for (const values of [
      [from, VOID, i128(5n)],
      [from, { type: 16 as const, vec: items.slice(1) }, i128(5n)],
      [VOID, good, i128(5n)],
      [from, good, u64(5n)]
    ])
      expect(refusalOf(world.invoke(world.batch, "deposit", values))).toBe("InvalidArgument")
  })
})

describe("a claim", () => {
  it("a claim raises the total, at most the voucher, and pays on settle", () => {
    const { config, world } = opened()
    const { events, returnValue } = done(world.claim([{ config, max: 300n, total: 200n }]))
    expect(returnValue).toEqual({ type: 3, u32: 1 })
    expect(events).toHaveLength(1)
    expect(calls.batchEventOf(world.at.address, events[0] as never)).toEqual({
      _tag: "Claimed",
      authorizer: codec.hexOfBytes(codec.authorizerKeyOf(text(sellerKey))),
      channels: [{ channelId: world.id(config), totalClaimed: 200n }]
    })
    expect(world.channel(config)).toMatchObject({ balance: 500n, totalClaimed: 200n })
    expect(lines(world)).toEqual([500n, 0n, 500n])
    const settled = done(world.settle())
    expect(calls.batchEventOf(world.at.address, settled.events.at(-1) as never)).toEqual({
      _tag: "Settled",
      receiver: text(payee),
      token: textOf(world.usd),
      amount: 200n
    })
    expect(lines(world)).toEqual([500n, 200n, 300n])
    expect(world.receiver()).toEqual({ totalClaimed: 200n, totalSettled: 200n })
    expect(refusalOf(world.settle())).toBe("NothingToSettle")
  })

  it("the same claim twice moves once, and an older claim after a newer one moves nothing", () => {
    const { config, world } = opened()
    done(world.claim([{ config, max: 300n, total: 200n }]))
    for (const total of [200n, 199n, 0n, -1n]) {
      const again = done(world.claim([{ config, max: 300n, total }]))
      expect(again.returnValue).toEqual({ type: 3, u32: 0 })
      expect(again.events).toHaveLength(0)
    }
    expect(world.channel(config)).toMatchObject({ totalClaimed: 200n })
    expect(world.receiver()?.totalClaimed).toBe(200n)
  })

  it("an entry that does not hold fails the whole and is named", () => {
    const { config, world } = opened()
    const other = world.config({ salt: "01".repeat(32) })
    done(world.deposit(other, 100n))
    const good = { config, max: 300n, total: 200n }
    const refused = (entry: Parameters<BatchWorld["claim"]>[0][number]) => {
      const result = world.claim([good, entry])
      return refusalOf(result)
    }
    expect(refused({ config: other, max: 50n, total: 51n })).toBe("TotalAboveMaximum 1")
    expect(refused({ config: other, max: 500n, total: 101n })).toBe("TotalAboveBalance 1")
    expect(refused({ config: world.config({ salt: "02".repeat(32) }), max: 5n, total: 5n })).toBe("ChannelNotFound 1")
    expect(refusalOf(world.claim([{ config: other, max: 50n, total: 51n }, good]))).toBe("TotalAboveMaximum 0")
    expect(world.channel(config)).toMatchObject({ totalClaimed: 0n })
  })

  it("totals above 64 bits are compared in both halves", () => {
    const { config, world } = opened()
    const high = 1n << 64n
    expect(refusalOf(world.claim([{ config, max: high, total: high + 1n }]))).toBe("TotalAboveMaximum 0")
    expect(refusalOf(world.claim([{ config, max: 400n, total: high + 1n }]))).toBe("TotalAboveMaximum 0")
    expect(refusalOf(world.claim([{ config, max: high + 1n, total: high + 1n }]))).toBe("TotalAboveBalance 0")
    done(world.claim([{ config, max: (1n << 127n) - 1n, total: 500n }]))
  })

  it("a claim needs a voucher of the channel's own key, for this channel and this maximum", () => {
    const { config, world } = opened()
    const other = world.config({ salt: "01".repeat(32) })
    const voucher = (at: codec.BatchContract, id: string, max: bigint) =>
      signedBy(session, codec.voucherDigest(at, id, max))
    const claim = (signature: string) => errorOf(world.claim([{ config, max: 300n, total: 200n, signature }]))
    const elsewhere = { ...world.at, address: textOf(world.usd) }
    const network = { ...world.at, networkId: new Uint8Array(32) }
    for (const signature of [
      voucher(world.at, world.id(other), 300n),
      voucher(world.at, world.id(config), 299n),
      voucher(elsewhere, world.id(config), 300n),
      voucher(network, world.id(config), 300n),
      signedBy(payer, codec.voucherDigest(world.at, world.id(config), 300n)),
      signedBy(sellerKey, codec.voucherDigest(world.at, world.id(config), 300n)),
      signedBy(session, codec.refundDigest(world.at, world.id(config), 300n, 0n, world.expiresAt)),
      "00".repeat(64)
    ])
      expect(claim(signature)).toMatch(badSignature)
  })

  it("a claim needs the receiver's authorizer for just these entries in this order", () => {
    const { config, world } = opened()
    const other = world.config({ salt: "01".repeat(32) })
    done(world.deposit(other, 100n))
    const entries = [config, other].map((one) => world.entry({ config: one, max: 50n, total: 40n }))
    const claim = (signed: ReadonlyArray<codec.ClaimEntry>, sent: ReadonlyArray<codec.ClaimEntry> = entries) =>
      world.invokeBatch("claim", calls.claimArgs(sent, world.expiresAt, world.claimSignature(signed)))
    expect(errorOf(claim([...entries].reverse()))).toMatch(badSignature)
    expect(errorOf(claim(entries.slice(1)))).toMatch(badSignature)
    expect(errorOf(claim(entries.map((one) => ({ ...one, totalClaimed: 39n }))))).toMatch(badSignature)
    expect(errorOf(claim(entries.map((one) => ({ ...one, maxClaimableAmount: 51n }))))).toMatch(badSignature)
    expect(errorOf(world.claim([{ config, max: 50n, total: 40n }], session))).toMatch(badSignature)
    expect(errorOf(world.claim([{ config, max: 50n, total: 40n }], payee))).toMatch(badSignature)
    expect(world.channel(config)).toMatchObject({ totalClaimed: 0n })
    done(claim(entries))
  })

  it("a claim that moves nothing still needs the authorizer", () => {
    const { config, world } = opened()
    done(world.claim([{ config, max: 300n, total: 200n }]))
    expect(errorOf(world.claim([{ config, max: 300n, total: 200n }], stranger))).toMatch(badSignature)
  })

  it("channels of different authorizers are not claimed together", () => {
    const { config, world } = opened()
    const other = world.config({ receiverAuthorizer: text(payee) })
    done(world.deposit(other, 100n))
    const claims = [config, other].map((one) => ({ config: one, max: 50n, total: 40n }))
    expect(refusalOf(world.claim(claims))).toBe("AuthorizerMismatch 1")
  })

  it("one claim credits several receivers, each its own, in any order", () => {
    const { config, world } = opened()
    const other = world.config({ receiver: text(stranger) })
    const third = world.config({ salt: "03".repeat(32) })
    done(world.deposit(other, 100n))
    done(world.deposit(third, 100n))
    done(
      world.claim([
        { config, max: 50n, total: 10n },
        { config: other, max: 50n, total: 20n },
        { config: third, max: 50n, total: 30n },
        { config, max: 50n, total: 15n }
      ])
    )
    expect(world.receiver()?.totalClaimed).toBe(45n)
    expect(world.receiver(text(stranger))?.totalClaimed).toBe(20n)
    done(world.settle(text(stranger)))
    expect(lines(world)).toEqual([300n, 0n, 680n])
  })

  it("a claim of nothing, of too many channels and of other types is refused", () => {
    const { config, world } = opened()
    expect(refusalOf(world.claim([]))).toBe("NoClaims")
    const many = Array.from({ length: 257 }, () =>
      world.entry({ config, max: 1n, total: 1n, signature: "00".repeat(64) })
    )
    expect(refusalOf(world.invokeBatch("claim", calls.claimArgs(many, world.expiresAt, "00".repeat(64))))).toBe(
      "TooManyClaims"
    )
    const call = (claims: Parameters<typeof engineValue>[0]) =>
      refusalOf(
        world.invoke(world.batch, "claim", [engineValue(claims), u64(9_999_999_999n), bytes(new Uint8Array(64))])
      )
    expect(call(u64Value(1n))).toBe("InvalidArgument")
    const claimed = world.entry({ config, max: 300n, total: 200n })
    const one = calls.claimsValue([claimed]) as unknown as { vec: ReadonlyArray<{ vec: ReadonlyArray<never> }> }
    const items = one.vec[0]!.vec
    const withItem = (i: number, value: unknown) =>
      ({ type: 16, vec: [{ type: 16, vec: items.map((item, at) => (at === i ? value : item)) }] }) as never
    expect(call({ type: 16, vec: [u64Value(1n)] } as never)).toBe("InvalidArgument 0")
    for (const i of [0, 1, 3]) expect(call(withItem(i, u64Value(1n)))).toBe("InvalidArgument 0")
  })
})

describe("a refund", () => {
  it("a refund pays the payer at most what is left, and its nonce counts once", () => {
    const { config, world } = opened()
    done(world.claim([{ config, max: 300n, total: 200n }]))
    const { events, returnValue } = done(world.refund(config, 100n))
    expect(readI128(returnValue)).toBe(100n)
    expect(calls.batchEventOf(world.at.address, events.at(-1) as never)).toEqual({
      _tag: "Refunded",
      channelId: world.id(config),
      payer: text(payer),
      amount: 100n,
      balance: 400n,
      nonce: 0n
    })
    expect(refusalOf(world.refund(config, 100n))).toBe("RefundNonceMismatch")
    expect(refusalOf(world.refund(config, 100n, { nonce: 2n }))).toBe("RefundNonceMismatch")
    expect(readI128(done(world.refund(config, 1_000n, { nonce: 1n })).returnValue)).toBe(200n)
    expect(world.channel(config)).toEqual({
      balance: 200n,
      totalClaimed: 200n,
      withdrawRequestedAt: 0,
      refundNonce: 2n
    })
    expect(refusalOf(world.refund(config, 1n, { nonce: 2n }))).toBe("NothingLeft")
    expect(lines(world)).toEqual([800n, 0n, 200n])
  })

  it("a refund makes its claims first, and none when one does not hold", () => {
    const { config, world } = opened()
    const claims = [{ config, max: 300n, total: 300n }]
    expect(refusalOf(world.refund(config, 500n, { claims: [{ config, max: 300n, total: 301n }] }))).toBe(
      "TotalAboveMaximum 0"
    )
    expect(errorOf(world.refund(config, 500n, { claims, claimsBy: payee }))).toMatch(badSignature)
    expect(readI128(done(world.refund(config, 500n, { claims })).returnValue)).toBe(200n)
    done(world.settle())
    expect(lines(world)).toEqual([700n, 300n, 0n])
  })

  it("a refund needs the receiver's authorizer for this channel, amount and nonce", () => {
    const { config, world } = opened()
    for (const by of [payer, payee, session, stranger])
      expect(errorOf(world.refund(config, 100n, { by }))).toMatch(badSignature)
    const refund = (digest: Uint8Array) =>
      errorOf(
        world.invokeBatch(
          "refund",
          calls.refundArgs({
            config,
            amount: 100n,
            nonce: 0n,
            expiresAt,
            signature: signedBy(sellerKey, digest),
            claims: []
          })
        )
      )
    const id = world.id(config)
    const { expiresAt } = world
    for (const digest of [
      codec.refundDigest(world.at, id, 99n, 0n, expiresAt),
      codec.refundDigest(world.at, id, 100n, 1n, expiresAt),
      codec.refundDigest(world.at, id, 100n, 0n, expiresAt - 1),
      codec.refundDigest(world.at, world.id(world.config({ salt: "01".repeat(32) })), 100n, 0n, expiresAt),
      codec.refundDigest({ ...world.at, address: textOf(world.usd) }, id, 100n, 0n, expiresAt),
      codec.refundDigest({ ...world.at, networkId: new Uint8Array(32) }, id, 100n, 0n, expiresAt),
      codec.voucherDigest(world.at, id, 100n)
    ])
      expect(refund(digest)).toMatch(badSignature)
  })

  it("amounts and members of another kind are refused", () => {
    const { config, world } = opened()
    for (const amount of [0n, -1n]) expect(refusalOf(world.refund(config, amount))).toBe("InvalidAmount")
    const args = calls
      .refundArgs({ config, amount: 1n, nonce: 0n, expiresAt: world.expiresAt, signature: "00".repeat(64), claims: [] })
      .map(engineValue)
    for (const i of [0, 1, 2, 3, 5])
      expect(refusalOf(world.invoke(world.batch, "refund", args.with(i, VOID)))).toBe("InvalidArgument")
    expect(refusalOf(world.refund(world.config({ salt: "09".repeat(32) }), 1n))).toBe("ChannelNotFound")
  })
})

describe("the end of an authorizer's signature", () => {
  it("a signed refund counts up to its last close time, and never later", () => {
    const { config, world } = opened()
    const expiresAt = Number(world.closeTime)
    world.closeTime += 1n
    expect(refusalOf(world.refund(config, 100n, { expiresAt }))).toBe("SignatureExpired")
    world.closeTime -= 1n
    expect(readI128(done(world.refund(config, 100n, { expiresAt })).returnValue)).toBe(100n)
  })

  it("a signed claim counts up to its last close time, and for no other end", () => {
    const { config, world } = opened()
    const entries = [world.entry({ config, max: 50n, total: 40n })]
    const expiresAt = Number(world.closeTime)
    const signature = world.claimSignature(entries, sellerKey, expiresAt)
    const claim = (until: number) => world.invokeBatch("claim", calls.claimArgs(entries, until, signature))
    world.closeTime += 1n
    expect(refusalOf(claim(expiresAt))).toBe("SignatureExpired")
    expect(errorOf(claim(expiresAt + 1))).toMatch(badSignature)
    world.closeTime -= 1n
    done(claim(expiresAt))
  })
})

describe("a withdrawal", () => {
  const closed = 1_700_000_000n

  it("the payer alone gets back what is not claimed, after the delay", () => {
    const { config, world } = opened()
    const started = done(world.withdrawStart(config))
    expect(calls.batchEventOf(world.at.address, started.events[0] as never)).toEqual({
      _tag: "WithdrawStarted",
      channelId: world.id(config),
      payer: text(payer),
      endsAt: Number(closed) + 900
    })
    expect(started.returnValue).toEqual(u64(closed + 900n))
    expect(world.channel(config)?.withdrawRequestedAt).toBe(Number(closed))
    world.closeTime = closed + 899n
    expect(refusalOf(world.withdrawEnd(config))).toBe("WithdrawalTooEarly")
    world.closeTime = closed + 900n
    const ended = done(world.withdrawEnd(config))
    expect(calls.batchEventOf(world.at.address, ended.events.at(-1) as never)).toEqual({
      _tag: "WithdrawEnded",
      channelId: world.id(config),
      payer: text(payer),
      amount: 500n,
      balance: 0n
    })
    expect(lines(world)).toEqual([1_000n, 0n, 0n])
    expect(refusalOf(world.withdrawEnd(config))).toBe("WithdrawalNotStarted")
    expect(refusalOf(world.withdrawStart(config))).toBe("NothingLeft")
  })

  it("the seller claims within the delay, and the payer gets the rest", () => {
    const { config, world } = opened()
    done(world.withdrawStart(config))
    world.closeTime = closed + 10_000n
    done(world.claim([{ config, max: 400n, total: 400n }]))
    expect(readI128(done(world.withdrawEnd(config)).returnValue)).toBe(100n)
    expect(refusalOf(world.claim([{ config, max: 500n, total: 401n }]))).toBe("TotalAboveBalance 0")
  })

  it("when all was claimed meanwhile a withdrawal ends with nothing", () => {
    const { config, world } = opened()
    done(world.withdrawStart(config))
    done(world.claim([{ config, max: 500n, total: 500n }]))
    world.closeTime += 900n
    const ended = done(world.withdrawEnd(config))
    expect(readI128(ended.returnValue)).toBe(0n)
    // No transfer of nothing is asked of the token.
    expect(ended.events).toHaveLength(1)
    expect(world.channel(config)).toMatchObject({ balance: 500n, totalClaimed: 500n, withdrawRequestedAt: 0 })
  })

  it("none but the payer starts or ends it", () => {
    const { config, world } = opened()
    for (const by of [stranger, payee, session]) {
      expect(errorOf(world.withdrawStart(config, by))).toMatch(/Auth/)
    }
    expect(errorOf(world.invokeBatch("withdraw_start", calls.withdrawArgs(config)))).toMatch(/Auth/)
    done(world.withdrawStart(config))
    world.closeTime += 900n
    expect(errorOf(world.withdrawEnd(config, stranger))).toMatch(/Auth/)
    expect(errorOf(world.invokeBatch("withdraw_end", calls.withdrawArgs(config)))).toMatch(/Auth/)
  })

  it("a second start does not move the first, and a channel that is not there has none", () => {
    const { config, world } = opened()
    done(world.withdrawStart(config))
    world.closeTime += 10n
    expect(refusalOf(world.withdrawStart(config))).toBe("WithdrawalAlreadyStarted")
    const other = world.config({ salt: "01".repeat(32) })
    expect(refusalOf(world.withdrawStart(other))).toBe("ChannelNotFound")
    expect(refusalOf(world.withdrawEnd(other))).toBe("ChannelNotFound")
  })

  it("a deposit and a small refund leave a started withdrawal, a whole refund ends it", () => {
    const { config, world } = opened()
    done(world.withdrawStart(config))
    done(world.deposit(config, 100n))
    done(world.refund(config, 1n))
    expect(world.channel(config)?.withdrawRequestedAt).toBe(Number(closed))
    done(world.refund(config, 599n, { nonce: 1n }))
    expect(world.channel(config)).toMatchObject({ balance: 0n, withdrawRequestedAt: 0 })
  })

  it("an emptied channel keeps its totals: spent vouchers and signed refunds do not count again", () => {
    const { config, world } = opened()
    done(world.claim([{ config, max: 300n, total: 300n }]))
    done(world.withdrawStart(config))
    world.closeTime += 900n
    done(world.withdrawEnd(config))
    expect(world.channel(config)).toEqual({
      balance: 300n,
      totalClaimed: 300n,
      withdrawRequestedAt: 0,
      refundNonce: 1n
    })
    done(world.deposit(config, 200n))
    expect(done(world.claim([{ config, max: 300n, total: 300n }])).returnValue).toEqual({ type: 3, u32: 0 })
    expect(refusalOf(world.refund(config, 200n))).toBe("RefundNonceMismatch")
  })
})

describe("entries", () => {
  it("each call that changes a channel lets it live thirty days again, when half are over", () => {
    const { config, world } = opened()
    const key = contractDataKey(world.batch, bytes(codec.bytesOfHex(world.id(config))), 1)
    expect(world.liveUntil(key)).toBe(world.ledger + 518_400)
    const before = world.ledger
    world.ledger += 259_000
    done(world.claim([{ config, max: 10n, total: 10n }]))
    expect(world.liveUntil(key)).toBe(before + 518_400)
    world.ledger += 1_000
    done(world.claim([{ config, max: 20n, total: 20n }]))
    expect(world.liveUntil(key)).toBe(world.ledger + 518_400)
  })

  it("an archived channel loses nothing: the next claim restores it", () => {
    const { config, world } = opened()
    const key = contractDataKey(world.batch, bytes(codec.bytesOfHex(world.id(config))), 1)
    world.ledger += 600_000
    const { footprint, restoredIndices } = done(world.claim([{ config, max: 300n, total: 200n }]))
    const restored = restoredIndices.map((at) => JSON.stringify(footprint.readWrite[at]))
    expect(restored).toContain(JSON.stringify(key))
    expect(world.channel(config)).toMatchObject({ balance: 500n, totalClaimed: 200n })
    expect(world.liveUntil(key)).toBe(world.ledger + 518_400)
    done(world.settle())
    expect(lines(world)).toEqual([500n, 200n, 300n])
  })

  it("the state of a channel is what its entry says, and another id has none", () => {
    const { config, world } = opened()
    const { returnValue } = succeeded(world.invoke(world.batch, "state", [bytes(codec.bytesOfHex(world.id(config)))]))
    expect(calls.channelStateOf(returnValue as never)).toEqual(world.channel(config))
    expect(refusalOf(world.invoke(world.batch, "state", [bytes(new Uint8Array(32))]))).toBe("ChannelNotFound")
    expect(refusalOf(world.invoke(world.batch, "state", [bytes(new Uint8Array(31))]))).toBe("ChannelNotFound")
    expect(world.receiver(text(sponsor))).toEqual({ totalClaimed: 0n, totalSettled: 0n })
  })
})
