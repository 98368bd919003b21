// Rules of the engine that other tests do not cover: the effects that a caught failure undoes, the entries that may be
// touched, the effect of an expired entry, and the balances that may be clawed back.
import { describe, expect, it } from "vitest"
import { contractIdOf } from "../../../../plugins/ledger-local/engine/host/createContract.ts"
import { HostError } from "../../../../plugins/ledger-local/engine/host/HostError.ts"
import type { ContractRuntime } from "../../../../plugins/ledger-local/engine/host/HostTypes.ts"
import { entrySizeBytes } from "../../../../plugins/ledger-local/engine/state/rentSize.ts"
import {
  contractDataKey,
  Durability,
  keyString,
  ttlKeyString
} from "../../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import {
  address as addressVal,
  i128,
  readI128,
  structMap,
  sym,
  u32,
  vec,
  VOID
} from "../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import {
  contractAddress,
  type ScAddress,
  type ScVal,
  xdrText
} from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import {
  crypto,
  errorOf,
  issuer,
  ledgerSeq,
  lineBalance,
  networkId,
  paidWorld,
  payee,
  payer,
  sponsor,
  succeeded,
  transferArgs,
  type World
} from "./World.ts"

/** A contract in the store that is executed by `run`. */
const contractOf = (world: World, run: ContractRuntime["call"]): Uint8Array => {
  world.contracts = { call: run, validate: () => ({ v: 0 }) as never, protocolOf: () => 27 }
  const access = { mode: "record", randomNonce: () => 1n, useUpgradedAuth: true, allowNonRoot: false } as const
  const code = Uint8Array.of(0, 0x61, 0x73, 0x6d)
  succeeded(world.run({ type: 2, wasm: code }, [], { access })).changes.commit()
  const contractIdPreimage = { type: 0 as const, fromAddress: { address: sponsor.address, salt: new Uint8Array(32) } }
  const executable = { type: 0 as const, wasmHash: crypto.sha256(code) }
  succeeded(world.run({ type: 1, createContract: { contractIdPreimage, executable } }, [], { access })).changes.commit()
  return contractIdOf(crypto, networkId, contractIdPreimage)
}

const nonceKey = (owner: ScAddress, nonce: bigint) =>
  contractDataKey(owner, { type: 21, nonceKey: { nonce } }, Durability.temporary)

describe("a failure that a contract catches", () => {
  it("a caught failure rolls back authentication, so the next use spends the nonce", () => {
    const world = paidWorld()
    const asset = world.contractId()
    const args = transferArgs(payer, payee, 10n)
    let isFirst = true
    const id = contractOf(world, (host, { contractId, fn }) => {
      if (fn === "inner") {
        host.call(asset, "transfer", args)
        if (isFirst) throw HostError.contract(1, "the first one fails after it has moved")
        return VOID
      }
      if (fn !== "run") return VOID
      try {
        host.call(contractId, "inner", [], { allowSelfReentry: true })
      } catch (error) {
        if (!(error instanceof HostError)) throw error
      }
      isFirst = false
      host.call(asset, "transfer", args)
      return VOID
    })
    const entry = world.sign(payer, world.invocation("transfer", args), { nonce: 77n })
    const invokeContract = { contractAddress: contractAddress(id), functionName: xdrText("run"), args: [] }
    const { changes } = succeeded(world.run({ type: 0, invokeContract }, [entry]))
    expect(lineBalance(changes, payee)).toBe(10n)
    expect(changes.getEntry(nonceKey(payer.address, 77n))).toBeDefined()
  })
})

describe("an allowance", () => {
  const read = (world: World): bigint => {
    const result = succeeded(world.call("allowance", [addressVal(payer.address), addressVal(sponsor.address)]))
    return readI128(result.returnValue as ScVal)
  }
  const given = (allowedUntil: number, entryUntil: number): World => {
    const world = paidWorld()
    const owners = structMap({ from: addressVal(payer.address), spender: addressVal(sponsor.address) })
    const key = vec([sym("Allowance"), owners])
    const val = structMap({ amount: i128(7n), live_until_ledger: u32(allowedUntil) })
    const contract = contractAddress(world.contractId())
    world.contract({ type: 6, contractData: { ext: { v: 0 }, contract, key, durability: 0, val } }, entryUntil)
    return world
  }

  it("an allowance is worth nothing after its ledger, although its entry lives", () => {
    expect(read(given(ledgerSeq, ledgerSeq + 15))).toBe(7n)
    expect(read(given(ledgerSeq - 1, ledgerSeq + 15))).toBe(0n)
  })

  it("an allowance is worth nothing after its entry expires, regardless of its ledger", () => {
    expect(read(given(ledgerSeq + 15, ledgerSeq - 1))).toBe(0n)
  })
})

describe("a footprint", () => {
  it("a footprint forbids unnamed accesses and writes to read-only entries", () => {
    const world = paidWorld()
    const args = transferArgs(payer, payee, 1n)
    const found = succeeded(world.call("transfer", args, { by: payer })).footprint
    const enforced = (footprint: typeof found) =>
      world.call("transfer", args, { by: payer, access: { mode: "enforce", footprint } })
    expect(enforced(found).ok).toBe(true)
    const short = { ...found, readOnly: found.readOnly.slice(1) }
    expect(errorOf(enforced(short))).toMatch(/Storage, ExceededLimit.*outside of the footprint/)
    const readOnly = { readOnly: [...found.readOnly, ...found.readWrite], readWrite: [] }
    expect(errorOf(enforced(readOnly))).toMatch(/Storage, ExceededLimit.*outside of the footprint/)
  })
})

describe("an entry that may be written", () => {
  it("an expired temporary entry is removed with its TTL; others are restamped", () => {
    const world = paidWorld()
    const data = (name: string, durability: 0 | 1) => {
      const contract = contractAddress(world.contractId())
      return { ext: { v: 0 as const }, contract, key: sym(name), durability, val: u32(1) }
    }
    const written = [
      ["over", 0, ledgerSeq - 1],
      ["lives", 0, ledgerSeq],
      ["stays", 1, ledgerSeq]
    ] as const
    for (const [name, durability, until] of written)
      world.contract({ type: 6, contractData: data(name, durability) }, until)
    const args = transferArgs(payer, payee, 1n)
    const found = succeeded(world.call("transfer", args, { by: payer })).footprint
    const keys = written.map(([name, durability]) =>
      contractDataKey(contractAddress(world.contractId()), sym(name), durability)
    )
    const footprint = { ...found, readWrite: [...found.readWrite, ...keys] }
    const bare = succeeded(world.call("transfer", args, { by: payer, access: { mode: "enforce", footprint: found } }))
    const done = succeeded(world.call("transfer", args, { by: payer, access: { mode: "enforce", footprint } }))
    const [over, lives, stays] = keys.map((key) => done.changes.getEntry(key))
    expect([over, lives?.lastModifiedLedgerSeq, stays?.lastModifiedLedgerSeq]).toEqual([
      undefined,
      ledgerSeq,
      ledgerSeq
    ])
    expect(done.changes.get(ttlKeyString(crypto, keyString(keys[0]!)))).toBeUndefined()
    expect(done.writeBytes - bare.writeBytes).toBe(entrySizeBytes(lives!) + entrySizeBytes(stays!))
    expect(done.rentChanges).toEqual(bare.rentChanges)
  })
})

describe("a clawback", () => {
  it("takes nothing from a trustline that does not allow it", () => {
    const world = paidWorld()
    world.account(issuer, 100_0000000n, { flags: 8 })
    const args = [addressVal(payer.address), i128(5n)]
    expect(errorOf(world.call("clawback", args, { by: issuer }))).toMatch(/#10\) trustline isn't clawbackable/)
    world.line(payer, 1_000n, { flags: 5 })
    expect(lineBalance(succeeded(world.call("clawback", args, { by: issuer })).changes, payer)).toBe(995n)
  })
})
