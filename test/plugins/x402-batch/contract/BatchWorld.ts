// The batch contract on the engine of the local ledger: uploaded, created and called with real signatures, at a ledger
// and a close time that the test chooses. A call has honest defaults; a test changes its subject.
import { createHash } from "node:crypto"
import { contractIdOf } from "../../../../plugins/ledger-local/engine/host/createContract.ts"
import { invokeHostFunction } from "../../../../plugins/ledger-local/engine/host/Host.ts"
import type { HostResult } from "../../../../plugins/ledger-local/engine/host/HostResult.ts"
import { WasmRuntime } from "../../../../plugins/ledger-local/engine/wasm/WasmRuntime.ts"
import {
  codec,
  contractAddress,
  type HostFunction,
  type ScAddress,
  type ScVal,
  type SorobanAuthorizationEntry,
  type SorobanAuthorizedInvocation,
  xdrText
} from "../../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { addressText } from "../../../../kernel/stellar/Address.ts"
import { readContractData } from "../../../../kernel/stellar/LedgerEntry.ts"
import { addressValue, encodeValue, type Value } from "../../../../kernel/stellar/Value.ts"
import * as calls from "../../../../plugins/x402-batch/batchCalls.ts"
import * as batch from "../../../../plugins/x402-batch/batchCodec.ts"
import {
  type CallOptions,
  contractDataKey,
  crypto,
  issuer,
  type Key,
  keyOf,
  ledgerSeq,
  native,
  networkId,
  payee,
  payer,
  sponsor,
  stranger,
  succeeded,
  World
} from "../../ledger-local/engine/World.ts"

/** Keys of authorizers without accounts on the ledger. */
export const session = keyOf(21)
export const sellerKey = keyOf(22)

export const text = (key: Key): string => addressText(key.address as never)!
export const textOf = (address: ScAddress): string => addressText(address as never)!

/** A value of the plugin as the engine's, through its bytes. */
export const engineValue = (value: Value): ScVal => codec.ScVal.decode(encodeValue(value))
export const pluginValue = (value: ScVal): Value => value as unknown as Value

export const signedBy = (key: Key, digest: Uint8Array): string => batch.hexOfBytes(crypto.ed25519Sign(key.seed, digest))

const invocation = (
  contract: ScAddress,
  fn: string,
  args: ReadonlyArray<ScVal>,
  subInvocations: ReadonlyArray<SorobanAuthorizedInvocation> = []
): SorobanAuthorizedInvocation => ({
  function: { type: 0, contractFn: { contractAddress: contract, functionName: xdrText(fn), args: [...args] } },
  subInvocations: [...subInvocations]
})

export interface Claiming {
  readonly config: batch.ChannelConfig
  readonly max: bigint
  readonly total: bigint
  /** The voucher's signer; by default the session key. */
  readonly by?: Key
  /** Replaces the signature altogether. */
  readonly signature?: string
}

export class BatchWorld extends World {
  ledger = ledgerSeq
  closeTime = 1_700_000_000n
  #nonce = 100n
  /** The last call of the batch contract, for the computation of its cost. */
  lastCall: { readonly fn: string; readonly args: ReadonlyArray<ScVal> } = { fn: "", args: [] }
  readonly batch: ScAddress
  readonly at: batch.BatchContract
  readonly usd: ScAddress

  constructor(wasm: Uint8Array) {
    super()
    this.contracts = new WasmRuntime()
    for (const key of [issuer, payer, payee, sponsor, stranger]) this.account(key)
    this.line(payer)
    this.line(payee, 0n)
    this.line(stranger, 0n)
    this.sac()
    this.sac(native)
    this.batch = this.deploy(wasm)
    this.at = { networkId, address: textOf(this.batch) }
    this.usd = contractAddress(this.contractId())
  }

  /** Uploads and creates a contract. */
  deploy(wasm: Uint8Array, salt = new Uint8Array(32)): ScAddress {
    const contractIdPreimage = { type: 0 as const, fromAddress: { address: sponsor.address, salt } }
    const executable = { type: 0 as const, wasmHash: crypto.sha256(wasm) }
    const access = { mode: "record", randomNonce: () => 1n, useUpgradedAuth: true, allowNonRoot: false } as const
    succeeded(this.run({ type: 2, wasm }, [], { access })).changes.commit()
    succeeded(
      this.run({ type: 1, createContract: { contractIdPreimage, executable } }, [], { access })
    ).changes.commit()
    return contractAddress(contractIdOf(crypto, networkId, contractIdPreimage))
  }

  override run(
    hostFunction: HostFunction,
    auth: ReadonlyArray<SorobanAuthorizationEntry>,
    options: Pick<CallOptions, "source" | "access"> = {}
  ): HostResult {
    return invokeHostFunction({
      store: this.store,
      settings: this.settings,
      ledgerSeq: this.ledger,
      closeTime: this.closeTime,
      networkId,
      source: (options.source ?? sponsor).id,
      hostFunction,
      auth,
      access: options.access ?? { mode: "enforce-recording-footprint" },
      crypto,
      contracts: this.contracts!
    })
  }

  config(changes: Partial<batch.ChannelConfig> = {}): batch.ChannelConfig {
    return {
      payer: text(payer),
      payerAuthorizer: text(session),
      receiver: text(payee),
      receiverAuthorizer: text(sellerKey),
      token: textOf(this.usd),
      withdrawDelay: 900,
      salt: "00".repeat(32),
      ...changes
    }
  }

  id(config: batch.ChannelConfig): string {
    return batch.channelIdOf(this.at, config)
  }

  /** A call of any contract, authorized only by `auth`. */
  invoke(
    contract: ScAddress,
    fn: string,
    args: ReadonlyArray<ScVal>,
    auth: ReadonlyArray<SorobanAuthorizationEntry> = []
  ): HostResult {
    return this.run(
      { type: 0, invokeContract: { contractAddress: contract, functionName: xdrText(fn), args: [...args] } },
      auth
    )
  }

  /** A call of the batch contract; `by` signs it with the invocations below it. */
  invokeBatch(
    fn: string,
    args: ReadonlyArray<Value>,
    by?: Key,
    below: ReadonlyArray<SorobanAuthorizedInvocation> = []
  ): HostResult {
    const values = args.map(engineValue)
    this.lastCall = { fn, args: values }
    const auth =
      by === undefined
        ? []
        : [
            this.sign(by, invocation(this.batch, fn, values, below), {
              nonce: this.#nonce++,
              expiration: this.ledger + 100
            })
          ]
    return this.invoke(this.batch, fn, values, auth)
  }

  deposit(config: batch.ChannelConfig, amount: bigint, from: Key = payer, by: Key | undefined = from): HostResult {
    const token = tokenOf(config)
    const below = calls.depositTransferArgs(text(from), this.at.address, amount).map(engineValue)
    return this.invokeBatch("deposit", calls.depositArgs(text(from), config, amount), by, [
      invocation(token, "transfer", below)
    ])
  }

  entry({ by = session, config, max, signature, total }: Claiming): batch.ClaimEntry {
    return {
      config,
      maxClaimableAmount: max,
      signature: signature ?? signedBy(by, batch.voucherDigest(this.at, this.id(config), max)),
      totalClaimed: total
    }
  }

  /** By default, signatures of the receiver's authorizer are valid for a minute. */
  get expiresAt(): number {
    return Number(this.closeTime) + 60
  }

  claimSignature(
    entries: ReadonlyArray<batch.ClaimEntry>,
    by: Key = sellerKey,
    expiresAt: number = this.expiresAt
  ): string {
    return signedBy(by, batch.claimDigest(this.at, batch.claimedTotals(this.at, entries), expiresAt))
  }

  claim(claims: ReadonlyArray<Claiming>, by: Key = sellerKey): HostResult {
    const entries = claims.map((one) => this.entry(one))
    return this.invokeBatch("claim", calls.claimArgs(entries, this.expiresAt, this.claimSignature(entries, by)))
  }

  settle(receiver = text(payee), token = textOf(this.usd)): HostResult {
    return this.invokeBatch("settle", calls.settleArgs(receiver, token))
  }

  refund(
    config: batch.ChannelConfig,
    amount: bigint,
    options: { nonce?: bigint; expiresAt?: number; by?: Key; claims?: ReadonlyArray<Claiming>; claimsBy?: Key } = {}
  ): HostResult {
    const { expiresAt = this.expiresAt, nonce = 0n } = options
    const claims = (options.claims ?? []).map((one) => this.entry(one))
    const signature = signedBy(
      options.by ?? sellerKey,
      batch.refundDigest(this.at, this.id(config), amount, nonce, expiresAt)
    )
    const claimSignature = this.claimSignature(claims, options.claimsBy, expiresAt)
    const call = { config, amount, nonce, expiresAt, signature, claims, claimSignature }
    return this.invokeBatch("refund", calls.refundArgs(call))
  }

  withdrawStart(config: batch.ChannelConfig, by: Key | undefined = payer): HostResult {
    return this.invokeBatch("withdraw_start", calls.withdrawArgs(config), by)
  }

  withdrawEnd(config: batch.ChannelConfig, by: Key | undefined = payer): HostResult {
    return this.invokeBatch("withdraw_end", calls.withdrawArgs(config), by)
  }

  /** The channel's entry, read from the ledger as the facilitator reads it. */
  channel(config: batch.ChannelConfig): batch.ChannelState | undefined {
    const key = { type: 13 as const, bytes: batch.bytesOfHex(this.id(config)) }
    const entry = this.store.getEntry(contractDataKey(this.batch, key, 1))
    return entry === undefined ? undefined : calls.channelStateOf(readContractData(entry.data as never)?.value)
  }

  receiver(receiver = text(payee), token = textOf(this.usd)): calls.ReceiverState | undefined {
    return calls.receiverStateOf(
      pluginValue(succeeded(this.invokeBatch("receiver_state", calls.settleArgs(receiver, token))).returnValue)
    )
  }

  /** The last ledger of an entry's life. */
  liveUntil(key: ReturnType<typeof contractDataKey>): number | undefined {
    const hash = createHash("sha256").update(codec.LedgerKey.encode(key)).digest()
    const ttl = this.store.getEntry({ type: 9, ttl: { keyHash: Uint8Array.from(hash) } })
    return ttl?.data.type === 9 ? ttl.data.ttl.liveUntilLedgerSeq : undefined
  }

  /** The contract's own balance of a token. */
  held(token: ScAddress = this.usd): bigint {
    return this.balance(token, this.batch)
  }

  balance(token: ScAddress, owner: ScAddress): bigint {
    const result = succeeded(this.invoke(token, "balance", [{ type: 18, address: owner }]))
    const { returnValue } = result
    if (returnValue.type !== 10) throw new Error("a balance is no i128")
    return (BigInt(returnValue.i128.hi) << 64n) + BigInt.asUintN(64, BigInt(returnValue.i128.lo))
  }
}

const tokenOf = (config: batch.ChannelConfig): ScAddress => {
  const value = engineValue(addressValue(config.token))
  if (value.type !== 18) throw new Error("no address")
  return value.address
}
