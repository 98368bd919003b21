// Contract authorization. In enforcing mode, each `require_auth` must match a node of a given entry. The entry's
// signature, expiry and nonce are checked once, when its root is first used, and again after a rollback. In recording
// mode, it builds the entries that the call would need. The direct caller contract, and the calls that it authorized
// for its callee, need no entry.
import { AddressType, CredentialsType, EntryType, ScType } from "../xdr/types.ts"
import { Price } from "../host/instructionPrices.ts"
import { valuesIn } from "../xdr/valueSizes.ts"
import { HostError } from "../host/HostError.ts"
import type { AuthCheck, Authorization, ContractHost } from "../host/HostTypes.ts"
import { checkAccountAuth } from "./AccountAuth.ts"
import { authContexts } from "./authContexts.ts"
import { executableKeys } from "../host/executables.ts"
import { checkEntry, credentialsOf } from "./authEntry.ts"
import { functionString, InvocationTracker, type NodeSnapshot } from "./InvocationTracker.ts"
import { accountKey, contractDataKey, contractInstanceKey, Durability } from "../state/LedgerKeys.ts"
import { address as addressVal, bytes, sym, u32, vec, VOID } from "../xdr/ScVal.ts"
import {
  accountAddress,
  addressString,
  codec,
  equalAddress,
  type ScAddress,
  type ScVal,
  type SorobanAuthorizationEntry,
  type SorobanAuthorizedFunction,
  type SorobanAuthorizedInvocation
} from "../xdr/Xdr.ts"

interface AccountTracker {
  readonly entry: SorobanAuthorizationEntry | undefined
  readonly address: ScAddress
  readonly addressId: string
  readonly tree: InvocationTracker
  readonly isSource: boolean
  readonly nonce: bigint
  verified: boolean
  /** While its own authentication runs, a tracker takes no part in matching. */
  busy: boolean
}

interface InvokerTracker {
  readonly addressId: string
  readonly tree: InvocationTracker
}

type AuthFrame = { readonly contract: ScAddress; readonly fn: string } | { readonly create: SorobanAuthorizedFunction }

/** The state to return to when a frame fails. */
interface AuthSnapshot {
  readonly accounts: ReadonlyArray<readonly [AccountTracker, NodeSnapshot, boolean] | undefined>
  readonly accountCount: number
  readonly invokers: ReadonlyArray<NodeSnapshot>
}

/** An authorized call and all below it. */
export const callsIn = (invocation: SorobanAuthorizedInvocation): number =>
  invocation.subInvocations.reduce((total, sub) => total + callsIn(sub), 1)

export class Auth implements Authorization {
  readonly #host: ContractHost
  readonly #accounts: Array<AccountTracker> = []
  readonly #invokers: Array<InvokerTracker> = []
  readonly #frames: Array<AuthFrame> = []

  /** Takes and checks the given entries; a malformed value in any of them fails the whole call. */
  constructor(host: ContractHost) {
    this.#host = host
    if (host.input.access.mode === "record") return
    for (const entry of host.input.auth) {
      checkEntry(entry, host.input.settings.protocolVersion)
      host.meter.spend(Price.authorizedCall * callsIn(entry.rootInvocation))
      const credentials = credentialsOf(entry)
      const address = credentials?.address ?? accountAddress(host.input.source)
      this.#accounts.push({
        entry,
        address,
        addressId: addressString(address),
        tree: InvocationTracker.of(entry.rootInvocation),
        isSource: credentials === undefined,
        nonce: credentials?.nonce ?? 0n,
        verified: false,
        busy: false
      })
    }
  }

  pushContract(contract: ScAddress, fn: string): AuthSnapshot {
    this.#push({ contract, fn })
    return this.snapshot()
  }

  /** For authorization, a contract creation is a separate frame. */
  pushCreate(fn: SorobanAuthorizedFunction): void {
    this.#push({ create: fn })
  }

  #push(frame: AuthFrame): void {
    this.#frames.push(frame)
    for (const tracker of this.#accounts) if (!tracker.busy) tracker.tree.push()
    for (const tracker of this.#invokers) tracker.tree.push()
  }

  snapshot(): AuthSnapshot {
    return {
      accounts: this.#accounts.map((tracker) =>
        tracker.busy ? undefined : [tracker, tracker.tree.snapshot(), tracker.verified]
      ),
      accountCount: this.#accounts.length,
      invokers: this.#invokers.map((tracker) => tracker.tree.snapshot())
    }
  }

  /** Leaves the current frame; with a snapshot, everything since is taken back first. */
  pop(rollback?: AuthSnapshot): void {
    if (rollback !== undefined) {
      this.#accounts.length = rollback.accountCount
      for (const saved of rollback.accounts) {
        if (saved === undefined) continue
        const [tracker, nodes, verified] = saved
        tracker.tree.rollback(nodes)
        tracker.verified = verified
      }
      this.#invokers.length = rollback.invokers.length
      this.#invokers.forEach((tracker, i) => tracker.tree.rollback(rollback.invokers[i]!))
    }
    this.#frames.pop()
    for (const tracker of this.#accounts) if (!tracker.busy) tracker.tree.pop()
    for (const tracker of this.#invokers) tracker.tree.pop()
    while (this.#invokers.at(-1)?.tree.isEmpty === true) this.#invokers.pop()
  }

  /** Requires `address` to have authorized the current frame's call with `args`. */
  require(address: ScAddress, args: ReadonlyArray<ScVal>): void {
    const frame = this.#frames.at(-1)
    if (frame === undefined)
      throw HostError.of("Auth", "InternalError", "unexpected require_auth outside of valid frame")
    const fn: SorobanAuthorizedFunction =
      "create" in frame
        ? frame.create
        : {
            type: 0,
            contractFn: { contractAddress: frame.contract, functionName: sym(frame.fn).sym, args: args as ScVal[] }
          }
    const { meter } = this.#host
    for (const arg of args) meter.spend(Price.authorizedArgument * valuesIn(arg))
    const addressId = addressString(address)
    const id = functionString(fn)
    if (this.#invokerAuthorizes(address, addressId, id)) return
    if (this.#host.input.access.mode === "record") this.#record(address, addressId, fn)
    else this.#enforce(address, addressId, id)
  }

  #invokerAuthorizes(address: ScAddress, addressId: string, id: string): boolean {
    const invoker = this.#frames.at(-2)
    if (invoker === undefined) return false
    if ("contract" in invoker && equalAddress(invoker.contract, address)) return true
    return this.#invokers.some((tracker) => tracker.addressId === addressId && tracker.tree.match(id, true))
  }

  #enforce(address: ScAddress, addressId: string, id: string): void {
    const hasActive = this.#accounts.some(
      (tracker) =>
        !tracker.busy && tracker.addressId === addressId && tracker.tree.isActive && !tracker.tree.isFrameMatched
    )
    for (const tracker of this.#accounts) {
      if (tracker.busy || tracker.addressId !== addressId || !tracker.tree.match(id, !hasActive)) continue
      if (!tracker.verified) this.#verify(tracker)
      tracker.verified = true
      return
    }
    throw HostError.of("Auth", "InvalidAction", "Unauthorized function call for address", [addressVal(address)])
  }

  #verify(tracker: AccountTracker): void {
    if (tracker.isSource || tracker.entry === undefined) return
    const credentials = credentialsOf(tracker.entry)!
    tracker.busy = true
    try {
      this.#authenticate(tracker.entry, credentials.signature)
    } catch (error) {
      if (!(error instanceof HostError) || !this.#host.isRecoverable(error)) throw error
      this.#host.logError(error)
      throw HostError.of("Auth", "InvalidAction", "failed account authentication with error", [
        addressVal(tracker.address),
        { type: 2, error: error.scError }
      ])
    } finally {
      tracker.busy = false
    }
    const { ledgerSeq } = this.#host.input
    const expiration = credentials.signatureExpirationLedger
    if (ledgerSeq > expiration) {
      throw HostError.of("Auth", "InvalidInput", "signature has expired", [
        addressVal(tracker.address),
        u32(ledgerSeq),
        u32(expiration)
      ])
    }
    const latest = this.#host.storage.maxLiveUntil
    if (expiration > latest) {
      throw HostError.of("Auth", "InvalidInput", "signature expiration is too late", [
        addressVal(tracker.address),
        u32(latest),
        u32(expiration)
      ])
    }
    this.#consumeNonce(tracker.address, credentials.nonce, expiration)
  }

  #authenticate(entry: SorobanAuthorizationEntry, signature: ScVal): void {
    const credentials = credentialsOf(entry)!
    const { networkId, crypto } = this.#host.input
    const { nonce, signatureExpirationLedger, address } = credentials
    const invocation = entry.rootInvocation
    const payload = crypto.sha256(
      codec.HashIdPreimage.encode(
        entry.credentials.type === CredentialsType.address
          ? { type: 9, sorobanAuthorization: { networkId, nonce, signatureExpirationLedger, invocation } }
          : {
              type: 10,
              sorobanAuthorizationWithAddress: { networkId, nonce, signatureExpirationLedger, address, invocation }
            }
      )
    )
    const delegates =
      entry.credentials.type === CredentialsType.addressWithDelegates
        ? entry.credentials.addressWithDelegates.delegates
        : []
    this.#check(address, signature, {
      payload,
      invocation,
      delegates: delegates.map((delegate) => ({ signature: delegate, used: false }))
    })
  }

  #check(address: ScAddress, signature: ScVal, check: AuthCheck): void {
    if (address.type === AddressType.account) {
      this.#host.countAddressAuth()
      checkAccountAuth(this.#host.accountAuth, address.accountId, check.payload, signature)
    } else if (address.type === AddressType.contract) {
      this.#host.callCheckAuth(
        address.contractId,
        [bytes(check.payload), signature, vec(authContexts(check.invocation))],
        check
      )
    } else {
      throw HostError.of("Auth", "InvalidInput", "unexpected address type")
    }
  }

  /** Authenticates a delegate of the running `__check_auth` with the same payload and context (CAP-71). */
  delegate(running: AuthCheck | undefined, address: ScAddress): void {
    if (running === undefined) throw HostError.of("Auth", "InvalidAction", "delegation outside of __check_auth")
    const delegate = running.delegates.find(
      (candidate) => !candidate.used && equalAddress(candidate.signature.address, address)
    )
    if (delegate === undefined) {
      throw HostError.of("Auth", "InvalidAction", "address is not among the delegated signers", [addressVal(address)])
    }
    delegate.used = true
    this.#check(address, delegate.signature.signature, {
      payload: running.payload,
      invocation: running.invocation,
      delegates: delegate.signature.nestedDelegates.map((nested) => ({ signature: nested, used: false }))
    })
  }

  /** Authorizations by the current contract for the contracts that its next call reaches. */
  addInvokerAuth(contract: ScAddress, invocations: ReadonlyArray<SorobanAuthorizedInvocation>): void {
    for (const invocation of invocations) {
      this.#invokers.push({ addressId: addressString(contract), tree: InvocationTracker.of(invocation) })
    }
  }

  #consumeNonce(address: ScAddress, nonce: bigint, liveUntil: number): void {
    const { storage } = this.#host
    const nonceKey: ScVal = { type: 21, nonceKey: { nonce } }
    const key = contractDataKey(address, nonceKey, Durability.temporary)
    if (storage.get(key) !== undefined) {
      throw HostError.of("Auth", "ExistingValue", "nonce already exists for address", [addressVal(address)])
    }
    storage.put(
      key,
      { type: 6, contractData: { ext: { v: 0 }, contract: address, key: nonceKey, durability: 0, val: VOID } },
      Math.max(liveUntil, storage.minLiveUntil(Durability.temporary))
    )
  }

  #record(address: ScAddress, addressId: string, fn: SorobanAuthorizedFunction): void {
    const { access, source } = this.#host.input
    if (access.mode !== "record") return
    for (const tracker of this.#accounts) {
      if (tracker.addressId === addressId && tracker.tree.hasMatchInStack && tracker.tree.record(fn)) return
    }
    if (!access.allowNonRoot && this.#frames.length !== 1) {
      throw HostError.of(
        "Auth",
        "InvalidAction",
        "[recording authorization only] encountered authorization not tied to the root contract invocation " +
          "for an address. " +
          "Use `require_auth()` in the top invocation or enable non-root authorization.",
        [addressVal(address)]
      )
    }
    const isSource = equalAddress(address, accountAddress(source))
    const nonce = isSource ? 0n : access.randomNonce()
    // The nonce's rent is computed for the longest life a signer may choose later.
    if (!isSource) this.#consumeNonce(address, nonce, this.#host.storage.maxLiveUntil)
    this.#accounts.push({
      entry: undefined,
      address,
      addressId,
      tree: InvocationTracker.recording(fn, this.#frames.length),
      isSource,
      nonce,
      verified: true,
      busy: false
    })
  }

  /** The recorded entries, unsigned: signature void, expiration 0. Touches what their authentication would read. */
  recordedEntries(): Array<SorobanAuthorizationEntry> {
    const { access } = this.#host.input
    const upgraded = access.mode === "record" && access.useUpgradedAuth
    return this.#accounts.map((tracker): SorobanAuthorizationEntry => {
      const rootInvocation = tracker.tree.invocation
      if (tracker.isSource) return { credentials: { type: 0 }, rootInvocation }
      this.#touchSigner(tracker.address)
      const credentials = {
        address: tracker.address,
        nonce: tracker.nonce,
        signatureExpirationLedger: 0,
        signature: VOID
      }
      return {
        credentials: upgraded ? { type: 2, addressV2: credentials } : { type: 1, address: credentials },
        rootInvocation
      }
    })
  }

  #touchSigner(address: ScAddress): void {
    const { storage } = this.#host
    if (address.type === AddressType.account) {
      this.#host.countAddressAuth()
      this.#host.accountAuth.countSignature()
      storage.get(accountKey(address.accountId))
      return
    }
    const instance = storage.get(contractInstanceKey(address))
    const value = instance?.data.type === EntryType.contractData ? instance.data.contractData.val : undefined
    if (value?.type !== ScType.contractInstance) return
    for (const key of executableKeys(this.#host, value.instance.executable)) storage.get(key)
  }
}
