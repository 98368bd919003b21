// A small ledger for the engine's tests: accounts, trustlines and an asset's contract put straight into a store, and
// calls of that contract with real signatures. Keys come from fixed seeds, so every run computes the same bytes.
import { invokeHostFunction } from "../../../../plugins/ledger-local/engine/host/Host.ts"
import type { Access, ContractRuntime } from "../../../../plugins/ledger-local/engine/host/HostTypes.ts"
import type { HostFailure, HostResult, HostSuccess } from "../../../../plugins/ledger-local/engine/host/HostResult.ts"
import { assetContractId } from "../../../../plugins/ledger-local/transaction/assetContractId.ts"
import {
  contractDataKey,
  contractInstanceKey,
  keyOfEntry,
  keyString,
  trustLineAsset,
  ttlEntry,
  ttlHash,
  ttlKeyString
} from "../../../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import { type NetworkSettings, testnet } from "../../../../plugins/ledger-local/engine/state/NetworkSettings.ts"
import { newAccount } from "../../../../plugins/ledger-local/engine/sac/SacBalances.ts"
import { newSacStorage } from "../../../../plugins/ledger-local/engine/sac/SacInstance.ts"
import {
  address as addressVal,
  bool,
  bytes,
  i128,
  INSTANCE_KEY,
  structMap,
  sym,
  u32,
  vec,
  VOID
} from "../../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import { Store } from "../../../../plugins/ledger-local/engine/state/Store.ts"
import {
  accountAddress,
  type AccountEntry,
  type Asset,
  codec,
  contractAddress,
  fromLatin1,
  type HostFunction,
  type LedgerEntryData,
  type PublicKey,
  publicKey,
  type ScAddress,
  type ScVal,
  type SorobanAuthorizationEntry,
  type SorobanAuthorizedInvocation,
  type TrustLineEntry,
  xdrText
} from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { engineCrypto } from "../../../support/engineCrypto.ts"

export const crypto = engineCrypto
export const networkId = crypto.sha256(fromLatin1("Test SDF Network ; September 2015"))
export const ledgerSeq = 1_000
export const INT64_MAX = 9_223_372_036_854_775_807n

export interface Key {
  readonly seed: Uint8Array
  readonly id: PublicKey
  readonly address: ScAddress
}

/** A key from a small number. */
export const keyOf = (n: number): Key => {
  const seed = crypto.sha256(Uint8Array.of(n))
  const id = publicKey(crypto.ed25519PublicKey(seed))
  return { seed, id, address: accountAddress(id) }
}

export const issuer = keyOf(1)
export const payer = keyOf(2)
export const payee = keyOf(3)
export const sponsor = keyOf(4)
export const stranger = keyOf(5)

export const usd: Asset = { type: 1, alphaNum4: { assetCode: fromLatin1("USD\0"), issuer: issuer.id } }
export const native: Asset = { type: 0 }

export interface Signing {
  readonly credentials?: "v1" | "v2"
  readonly expiration?: number
  readonly nonce?: bigint
  readonly signers?: ReadonlyArray<Key>
  readonly sub?: ReadonlyArray<SorobanAuthorizedInvocation>
  /** Replaces the whole signature value. */
  readonly signature?: (payload: Uint8Array) => ScVal
}

export interface CallOptions extends Signing {
  /** Signers of the call's address entries; the source needs none. */
  readonly by?: Key
  readonly source?: Key
  readonly auth?: ReadonlyArray<SorobanAuthorizationEntry>
  readonly access?: Access
}

export class World {
  readonly store = Store.empty()
  settings: NetworkSettings = testnet
  /** Runs contract code, if a test supplies some. */
  contracts: ContractRuntime | undefined

  contractId(asset: Asset = usd): Uint8Array {
    return assetContractId(crypto, networkId, asset)
  }

  put(data: LedgerEntryData): void {
    this.store.put({ lastModifiedLedgerSeq: 1, data, ext: { v: 0 } })
  }

  account(key: Key, balance = 10_000_0000000n, changes: Partial<AccountEntry> = {}): void {
    this.put({ type: 0, account: { ...newAccount(key.id, balance, 1), ...changes } })
  }

  line(key: Key, balance = 1_000n, changes: Partial<TrustLineEntry> = {}, asset: Asset = usd): void {
    const trustLine = {
      accountId: key.id,
      asset: trustLineAsset(asset),
      balance,
      limit: INT64_MAX,
      flags: 1,
      ext: { v: 0 as const }
    }
    this.put({ type: 1, trustLine: { ...trustLine, ...changes } })
  }

  contract(data: Extract<LedgerEntryData, { type: 6 }>, liveUntil: number): void {
    const entry = { lastModifiedLedgerSeq: 1, data, ext: { v: 0 as const } }
    const id = keyString(keyOfEntry(entry))
    this.store.set(id, entry)
    this.store.set(ttlKeyString(crypto, id), ttlEntry(ttlHash(crypto, id), liveUntil, 1))
  }

  sac(asset: Asset = usd, liveUntil = ledgerSeq + 120_960): void {
    const contract = contractAddress(this.contractId(asset))
    const val = { type: 19 as const, instance: { executable: { type: 1 as const }, storage: newSacStorage(asset) } }
    this.contract(
      { type: 6, contractData: { ext: { v: 0 }, contract, key: INSTANCE_KEY, durability: 1, val } },
      liveUntil
    )
  }

  contractBalance(owner: ScAddress, amount: bigint, authorized = true, clawback = false, asset: Asset = usd): void {
    const contract = contractAddress(this.contractId(asset))
    const val = structMap({ amount: i128(amount), authorized: bool(authorized), clawback: bool(clawback) })
    const key = vec([sym("Balance"), addressVal(owner)])
    this.contract({ type: 6, contractData: { ext: { v: 0 }, contract, key, durability: 1, val } }, ledgerSeq + 600_000)
  }

  invocation(fn: string, args: ReadonlyArray<ScVal>, asset: Asset = usd): SorobanAuthorizedInvocation {
    const contractFn = {
      contractAddress: contractAddress(this.contractId(asset)),
      functionName: xdrText(fn),
      args: [...args]
    }
    return { function: { type: 0, contractFn }, subInvocations: [] }
  }

  /** An address entry signed by the key itself, or by `signers`. */
  sign(by: Key, root: SorobanAuthorizedInvocation, options: Signing = {}): SorobanAuthorizationEntry {
    const nonce = options.nonce ?? 7n
    const signatureExpirationLedger = options.expiration ?? ledgerSeq + 100
    const rootInvocation = options.sub === undefined ? root : { ...root, subInvocations: [...options.sub] }
    const preimage = { networkId, nonce, signatureExpirationLedger, invocation: rootInvocation }
    const payload = crypto.sha256(
      codec.HashIdPreimage.encode(
        options.credentials === "v1"
          ? { type: 9, sorobanAuthorization: preimage }
          : { type: 10, sorobanAuthorizationWithAddress: { ...preimage, address: by.address } }
      )
    )
    const signature = options.signature?.(payload) ?? signatureOf(payload, options.signers ?? [by])
    const credentials = { address: by.address, nonce, signatureExpirationLedger, signature }
    return {
      credentials:
        options.credentials === "v1" ? { type: 1, address: credentials } : { type: 2, addressV2: credentials },
      rootInvocation
    }
  }

  run(
    hostFunction: HostFunction,
    auth: ReadonlyArray<SorobanAuthorizationEntry>,
    options: Pick<CallOptions, "source" | "access"> = {}
  ): HostResult {
    return invokeHostFunction({
      store: this.store,
      settings: this.settings,
      ledgerSeq,
      closeTime: 1_700_000_000n,
      networkId,
      source: (options.source ?? sponsor).id,
      hostFunction,
      auth,
      access: options.access ?? { mode: "enforce-recording-footprint" },
      crypto,
      ...(this.contracts === undefined ? {} : { contracts: this.contracts })
    })
  }

  /** Calls the asset's contract; `by` signs, and without it the source account authorizes. */
  call(fn: string, args: ReadonlyArray<ScVal>, options: CallOptions = {}, asset: Asset = usd): HostResult {
    const root = this.invocation(fn, args, asset)
    const auth = options.auth ?? [
      options.by === undefined
        ? { credentials: { type: 0 as const }, rootInvocation: root }
        : this.sign(options.by, root, options)
    ]
    const invokeContract = {
      contractAddress: contractAddress(this.contractId(asset)),
      functionName: xdrText(fn),
      args: [...args]
    }
    return this.run({ type: 0, invokeContract }, auth, options)
  }
}

/** The signature value of a classic account: one map per signer, ascending by key. */
export const signatureOf = (payload: Uint8Array, signers: ReadonlyArray<Key>): ScVal =>
  vec(
    [...signers]
      .sort((a, b) => Buffer.compare(a.id.ed25519, b.id.ed25519))
      .map((signer) =>
        structMap({ public_key: bytes(signer.id.ed25519), signature: bytes(crypto.ed25519Sign(signer.seed, payload)) })
      )
  )

/** A world with an issuer, a payer holding 1,000, a payee, a sponsor and the asset's contract. */
export const paidWorld = (): World => {
  const world = new World()
  for (const key of [issuer, payer, payee, sponsor]) world.account(key)
  world.line(payer)
  world.line(payee, 0n)
  world.sac()
  world.sac(native)
  return world
}

export const transferArgs = (from: Key | ScAddress, to: Key | ScAddress, amount: bigint): Array<ScVal> => [
  addressVal("address" in from ? from.address : from),
  addressVal("address" in to ? to.address : to),
  i128(amount)
]

export const succeeded = (result: HostResult): HostSuccess => {
  if (!result.ok) throw new Error(`${result.error.label}: ${result.error.message}`)
  return result
}

export const failed = (result: HostResult): HostFailure => {
  if (result.ok) throw new Error("the call succeeded")
  return result
}

/** `Error(Type, Code) message` of a failure. */
export const errorOf = (result: HostResult): string => {
  const { error } = failed(result)
  return `${error.label} ${error.message}`
}

export const lineBalance = (store: Store, key: Key, asset: Asset = usd): bigint | undefined => {
  const entry = store.getEntry({ type: 1, trustLine: { accountId: key.id, asset: trustLineAsset(asset) } })
  return entry?.data.type === 1 ? entry.data.trustLine.balance : undefined
}

export const someContract: ScAddress = contractAddress(crypto.sha256(fromLatin1("a contract")))
export { contractDataKey, contractInstanceKey, u32, VOID }
