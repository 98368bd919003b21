// The settlement contract on the engine of the local ledger: uploaded, created and called with real signatures, at a
// ledger that the test chooses. Terms have honest defaults; a test changes its subject.
import { WasmRuntime } from "../../../plugins/ledger-local/engine/wasm/WasmRuntime.ts"
import { contractIdOf } from "../../../plugins/ledger-local/engine/host/createContract.ts"
import { invokeHostFunction } from "../../../plugins/ledger-local/engine/host/Host.ts"
import type { HostResult } from "../../../plugins/ledger-local/engine/host/HostResult.ts"
import { address, bytes, i128, u32, vec } from "../../../plugins/ledger-local/engine/xdr/ScVal.ts"
import {
  codec,
  contractAddress,
  type HostFunction,
  type ScAddress,
  type ScVal,
  type SorobanAuthorizationEntry,
  type SorobanAuthorizedInvocation,
  xdrText
} from "../../../plugins/ledger-local/engine/xdr/Xdr.ts"
import {
  type CallOptions,
  contractDataKey,
  crypto,
  issuer,
  type Key,
  ledgerSeq,
  native,
  networkId,
  payee,
  payer,
  sponsor,
  stranger,
  succeeded,
  World
} from "../ledger-local/engine/World.ts"

export interface Terms {
  readonly payer: ScAddress
  readonly payTo: ScAddress
  readonly token: ScAddress
  readonly max: ScVal
  readonly validAfter: ScVal
  readonly deadline: ScVal
  readonly facilitator: ScAddress
  readonly settlementId: ScVal
}

export interface Settling extends Partial<Terms> {
  readonly actual?: bigint | ScVal
  /**
   * The signers for the payer and the facilitator, and their signed invocations; by default those that the contract
   * requires.
   */
  readonly payerKey?: Key | "none"
  readonly facilitatorKey?: Key | "none"
  readonly payerNonce?: bigint
  readonly facilitatorNonce?: bigint
  readonly payerSigns?: (root: SorobanAuthorizedInvocation) => SorobanAuthorizedInvocation
  readonly facilitatorSigns?: (root: SorobanAuthorizedInvocation) => SorobanAuthorizedInvocation
  readonly expiration?: number
}

const invocation = (
  contract: ScAddress,
  fn: string,
  args: ReadonlyArray<ScVal>,
  subInvocations: ReadonlyArray<SorobanAuthorizedInvocation> = []
): SorobanAuthorizedInvocation => ({
  function: { type: 0, contractFn: { contractAddress: contract, functionName: xdrText(fn), args: [...args] } },
  subInvocations: [...subInvocations]
})

export const settlementId = (n: number): ScVal => bytes(new Uint8Array(32).fill(n))

export class UptoWorld extends World {
  ledger = ledgerSeq
  readonly upto: ScAddress
  readonly usdToken: ScAddress

  constructor(wasm: Uint8Array) {
    super()
    this.contracts = new WasmRuntime()
    for (const key of [issuer, payer, payee, sponsor, stranger]) this.account(key)
    this.line(payer)
    this.line(payee, 0n)
    this.line(stranger, 0n)
    this.sac()
    this.sac(native)
    this.upto = this.deploy(wasm)
    this.usdToken = contractAddress(this.contractId())
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
      closeTime: 1_700_000_000n,
      networkId,
      source: (options.source ?? sponsor).id,
      hostFunction,
      auth,
      access: options.access ?? { mode: "enforce-recording-footprint" },
      crypto,
      contracts: this.contracts!
    })
  }

  terms(changes: Partial<Terms> = {}): Terms {
    return {
      payer: payer.address,
      payTo: payee.address,
      token: this.usdToken,
      max: i128(600n),
      validAfter: u32(this.ledger),
      deadline: u32(this.ledger + 60),
      facilitator: sponsor.address,
      settlementId: settlementId(1),
      ...changes
    }
  }

  /** The payer's signed invocation: all arguments except the amount, and the two allowances below it. */
  promise(terms: Terms): SorobanAuthorizedInvocation {
    const approve = (amount: ScVal) =>
      invocation(terms.token, "approve", [address(terms.payer), address(this.upto), amount, terms.deadline])
    return invocation(this.upto, "settle", this.signedArguments(terms), [approve(terms.max), approve(i128(0n))])
  }

  signedArguments(terms: Terms): Array<ScVal> {
    const { deadline, facilitator, max, payTo, settlementId: id, token, validAfter } = terms
    return [address(terms.payer), address(payTo), address(token), max, validAfter, deadline, address(facilitator), id]
  }

  /** One call of the contract; nothing is committed. */
  settle(changes: Settling = {}): HostResult {
    const terms = this.terms(changes)
    const actual = typeof changes.actual === "object" ? changes.actual : i128(changes.actual ?? 250n)
    const args = [...this.signedArguments(terms), actual]
    const signing = { expiration: changes.expiration ?? this.ledger + 100 }
    const auth: Array<SorobanAuthorizationEntry> = []
    const { facilitatorKey = sponsor, payerKey = payer } = changes
    if (payerKey !== "none") {
      const root = (changes.payerSigns ?? ((root) => root))(this.promise(terms))
      auth.push(this.sign(payerKey, root, { ...signing, nonce: changes.payerNonce ?? 7n }))
    }
    if (facilitatorKey !== "none") {
      const root = (changes.facilitatorSigns ?? ((root) => root))(invocation(this.upto, "settle", args))
      auth.push(this.sign(facilitatorKey, root, { ...signing, nonce: changes.facilitatorNonce ?? 8n }))
    }
    const invokeContract = { contractAddress: this.upto, functionName: xdrText("settle"), args }
    return this.run({ type: 0, invokeContract }, auth)
  }

  /** Calls a contract's function directly, authorized only by the source. */
  invoke(contract: ScAddress, fn: string, args: ReadonlyArray<ScVal>): HostResult {
    const invokeContract = { contractAddress: contract, functionName: xdrText(fn), args: [...args] }
    return this.run({ type: 0, invokeContract }, [
      { credentials: { type: 0 }, rootInvocation: invocation(contract, fn, args) }
    ])
  }

  allowance(owner: ScAddress): ScVal {
    return succeeded(this.invoke(this.usdToken, "allowance", [address(owner), address(this.upto)])).returnValue
  }

  /** Whether the payer's id is marked as spent, and until which ledger. */
  spentUntil(by: ScAddress, id: ScVal): number | undefined {
    const key = contractDataKey(this.upto, vec([address(by), id]), 0)
    const entry = this.store.getEntry(key)
    return entry === undefined ? undefined : this.liveUntil(key)
  }

  liveUntil(key: ReturnType<typeof contractDataKey>): number | undefined {
    const hash = crypto.sha256(codec.LedgerKey.encode(key))
    const ttl = this.store.getEntry({ type: 9, ttl: { keyHash: hash } })
    return ttl?.data.type === 9 ? ttl.data.ttl.liveUntilLedgerSeq : undefined
  }
}
