// Delegated credentials (CAP-71): a contract account lets other addresses answer for it, over the same payload.
import { describe, expect, it } from "vitest"
import { contractIdOf } from "../../../../../plugins/ledger-local/engine/host/createContract.ts"
import { VOID } from "../../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { WasmRuntime } from "../../../../../plugins/ledger-local/engine/wasm/WasmRuntime.ts"
import {
  codec,
  compareBytes,
  contractAddress,
  type ScAddress,
  type ScVal,
  type SorobanAuthorizationEntry,
  type SorobanDelegateSignature,
  xdrText
} from "../../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import {
  crypto,
  errorOf,
  failed,
  type Key,
  ledgerSeq,
  networkId,
  paidWorld,
  payee,
  payer,
  signatureOf,
  sponsor,
  stranger,
  succeeded,
  transferArgs,
  type World
} from "../World.ts"

// A hand-written module: type 0 takes no value, 1 one value, 2 two, 3 three; all return one value.
const sized = (bytes: ReadonlyArray<number>): Array<number> => [bytes.length, ...bytes]
const section = (id: number, ...items: ReadonlyArray<ReadonlyArray<number>>): Array<number> => [
  id,
  ...sized([items.length, ...items.flat()])
]
const text = (value: string): Array<number> => sized([...new TextEncoder().encode(value)])
const I64 = 0x7e
const hostFunctions = [
  ["a", "9", 0],
  ["v", "1", 2],
  ["a", "a", 1]
] as const
const [SIGNERS, AT, DELEGATE] = [0, 1, 2]
const FIRST = [0x42, 4]
const SECOND = [0x42, 0x84, 0x80, 0x80, 0x80, 0x10]
/** delegate_account_auth(vec_get(get_delegated_signers(), at)), its result dropped. */
const delegate = (at: ReadonlyArray<number>): Array<number> => [0x10, SIGNERS, ...at, 0x10, AT, 0x10, DELEGATE, 0x1a]
const delegateFirst = delegate(FIRST)
const returnVoid = [0x42, 2]

/** A wallet with `body` as its `__check_auth`; `run` asks for the delegates outside of any authentication. */
const walletCode = (body: ReadonlyArray<number>): Uint8Array =>
  Uint8Array.from([
    0,
    0x61,
    0x73,
    0x6d,
    1,
    0,
    0,
    0,
    ...section(1, ...[0, 1, 2, 3].map((count) => [0x60, count, ...Array.from({ length: count }, () => I64), 1, I64])),
    ...section(2, ...hostFunctions.map(([module, name, type]) => [...text(module), ...text(name), 0, type])),
    ...section(3, [3], [0]),
    ...section(5, [0, 1]),
    ...section(7, [...text("__check_auth"), 0, 3], [...text("run"), 0, 4], [...text("memory"), 2, 0]),
    ...section(10, sized([0, ...body, 0x0b]), sized([0, 0x10, SIGNERS, 0x0b])),
    0,
    ...sized([...text("contractenvmetav0"), 0, 0, 0, 0, 0, 0, 0, 27, 0, 0, 0, 0])
  ])

const deploy = (world: World, code: Uint8Array, salt: number): ScAddress => {
  const access = { mode: "record", randomNonce: () => 1n, useUpgradedAuth: true, allowNonRoot: false } as const
  succeeded(world.run({ type: 2, wasm: code }, [], { access })).changes.commit()
  const contractIdPreimage = {
    type: 0 as const,
    fromAddress: { address: sponsor.address, salt: new Uint8Array(32).fill(salt) }
  }
  const executable = { type: 0 as const, wasmHash: crypto.sha256(code) }
  succeeded(world.run({ type: 1, createContract: { contractIdPreimage, executable } }, [], { access })).changes.commit()
  return contractAddress(contractIdOf(crypto, networkId, contractIdPreimage))
}

interface Scene {
  readonly world: World
  readonly wallet: ScAddress
  /** A second wallet, which can be a delegate. */
  readonly other: ScAddress
}

const scene = (body: ReadonlyArray<number> = [...delegateFirst, ...returnVoid]): Scene => {
  const world = paidWorld()
  world.contracts = new WasmRuntime()
  const wallet = deploy(world, walletCode(body), 1)
  const other = deploy(world, walletCode([...delegateFirst, ...returnVoid]), 2)
  world.contractBalance(wallet, 100n)
  return { world, wallet, other }
}

type Delegates = (payload: Uint8Array) => ReadonlyArray<SorobanDelegateSignature>
const signedBy = (key: Key, payload: Uint8Array): SorobanDelegateSignature => ({
  address: key.address,
  signature: signatureOf(payload, [key]),
  nestedDelegates: []
})

const pay = (
  { world, wallet }: Scene,
  delegates: Delegates,
  options: { readonly signature?: ScVal; readonly expiration?: number } = {}
) => {
  const args = transferArgs(wallet, payee, 30n)
  const invocation = world.invocation("transfer", args)
  const signatureExpirationLedger = options.expiration ?? ledgerSeq + 100
  const credentials = { address: wallet, nonce: 7n, signatureExpirationLedger }
  const payload = crypto.sha256(
    codec.HashIdPreimage.encode({
      type: 10,
      sorobanAuthorizationWithAddress: { networkId, ...credentials, invocation }
    })
  )
  const entry: SorobanAuthorizationEntry = {
    credentials: {
      type: 3,
      addressWithDelegates: {
        addressCredentials: { ...credentials, signature: options.signature ?? VOID },
        delegates: [...delegates(payload)]
      }
    },
    rootInvocation: invocation
  }
  return world.call("transfer", args, { auth: [entry] })
}

const refused = "Error(Auth, InvalidAction) failed account authentication with error"

describe("delegated credentials", () => {
  it("an account signs as delegate over the contract account's payload", () => {
    const at = scene()
    const paid = succeeded(pay(at, (payload) => [signedBy(payer, payload)]))
    paid.changes.commit()
    const nonces = paid.footprint.readWrite.filter((key) => key.type === 6 && key.contractData.key.type === 21)
    expect(nonces.map((key) => key.type === 6 && key.contractData.contract)).toEqual([at.wallet])
    expect(errorOf(pay(at, (payload) => [signedBy(payer, payload)]))).toBe(
      "Error(Auth, ExistingValue) nonce already exists for address"
    )
  })

  it("delegated credentials work through a nested contract account", () => {
    const at = scene()
    const nested: Delegates = (payload) => [
      { address: at.other, signature: VOID, nestedDelegates: [signedBy(payer, payload)] }
    ]
    expect(pay(at, nested).ok).toBe(true)
    expect(errorOf(pay(at, () => [{ address: at.other, signature: VOID, nestedDelegates: [] }]))).toBe(refused)
    expect(
      errorOf(
        pay(at, () => [{ address: at.other, signature: VOID, nestedDelegates: [signedBy(payer, new Uint8Array(32))] }])
      )
    ).toBe(refused)
  })

  it("delegated credentials need a delegate's valid signature over the payload", () => {
    const at = scene()
    expect(errorOf(pay(at, () => []))).toBe(refused)
    expect(errorOf(pay(at, () => [signedBy(payer, new Uint8Array(32))]))).toBe(refused)
    expect(
      errorOf(pay(at, (payload) => [{ ...signedBy(payer, payload), signature: signatureOf(payload, [stranger]) }]))
    ).toBe(refused)
    expect(errorOf(pay(at, (payload) => [signedBy(stranger, payload)]))).toBe(refused)
  })

  it("expire with the entry that carries them", () => {
    expect(pay(scene(), (payload) => [signedBy(payer, payload)], { expiration: ledgerSeq }).ok).toBe(true)
    expect(errorOf(pay(scene(), (payload) => [signedBy(payer, payload)], { expiration: ledgerSeq - 1 }))).toBe(
      "Error(Auth, InvalidInput) signature has expired"
    )
  })

  it("use a delegate once", () => {
    const twice = scene([...delegateFirst, ...delegateFirst, ...returnVoid])
    const result = pay(twice, (payload) => [signedBy(payer, payload)])
    expect(errorOf(result)).toBe(refused)
    expect(
      JSON.stringify(failed(result).diagnostics, (_, value) =>
        typeof value === "bigint"
          ? String(value)
          : value?.bytes instanceof Uint8Array
            ? Buffer.from(value.bytes).toString()
            : value
      )
    ).toContain("address is not among the delegated signers")
  })

  it("delegated credentials answer for the requested delegate in any order", () => {
    const at = scene([...delegate(SECOND), ...returnVoid])
    expect(pay(at, (payload) => [signedBy(payer, payload), signedBy(sponsor, payload)].toSorted(byAddress)).ok).toBe(
      true
    )
    expect(errorOf(pay(at, (payload) => [signedBy(payer, payload)]))).toBe(refused)
  })

  it("delegated credentials do not authorize a contract account that does not request them", () => {
    const own = scene(returnVoid)
    expect(pay(own, () => []).ok).toBe(true)
    const deaf = scene([0x00])
    expect(errorOf(pay(deaf, (payload) => [signedBy(payer, payload)]))).toBe(refused)
  })

  it("refuses delegates that are not in strict address order", () => {
    const at = scene()
    const both = (payload: Uint8Array) => [signedBy(payer, payload), signedBy(sponsor, payload)].toSorted(byAddress)
    expect(pay(at, both).ok).toBe(true)
    for (const wrong of [
      (payload: Uint8Array) => both(payload).toReversed(),
      (payload: Uint8Array) => [signedBy(payer, payload), signedBy(payer, payload)]
    ]) {
      expect(errorOf(pay(at, wrong))).toBe("Error(Auth, InvalidInput) delegates are not sorted by address")
    }
  })

  it("delegates are available only during authentication", () => {
    const { world, wallet } = scene()
    if (wallet.type !== 1) throw new Error("a wallet is a contract")
    const result = world.run(
      { type: 0, invokeContract: { contractAddress: wallet, functionName: xdrText("run"), args: [] } },
      []
    )
    expect(errorOf(result)).toMatch(/^Error\(Auth, InvalidAction\)/)
  })
})

function byAddress(a: SorobanDelegateSignature, b: SorobanDelegateSignature): number {
  return compareBytes(codec.ScAddress.encode(a.address), codec.ScAddress.encode(b.address))
}
