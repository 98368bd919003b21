// The running host: its storage, authorization, events and stack of frames. Calling a contract opens a frame with a
// separate overlay. When the callee fails, everything since then is rolled back, including the nonces it used. The
// built-in asset contract and a contract runtime for wasm both work through the methods here.
import { EntryType, ExecutableType, ScType } from "../xdr/types.ts"
import { Auth } from "../auth/Auth.ts"
import { EventLog } from "./EventLog.ts"
import { wasmHashOf } from "./executables.ts"
import { HostError, Unsupported } from "./HostError.ts"
import type { AccountAuthHost, AuthCheck, CallOptions, ContractHost, Frame, HostInput } from "./HostTypes.ts"
import { InstructionMeter } from "./InstructionMeter.ts"
import { contractCodeKey, contractInstanceKey, keyOfEntry, keyString } from "../state/LedgerKeys.ts"
import { objectsIn, valuesIn } from "../xdr/valueSizes.ts"
import { chargeSignature, Price } from "./instructionPrices.ts"
import type { Random } from "./Random.ts"
import { callSac } from "../sac/Sac.ts"
import { checkScVal, checkSymbol, compareScVal, sym, type XdrString } from "../xdr/ScVal.ts"
import { Storage } from "./Storage.ts"
import { ValueCosts } from "./ValueCosts.ts"
import { verifyEd25519 } from "../../../../kernel/ledger/Ed25519.ts"
import { contractAddress, equalBytes, type LedgerEntry, type ScMapEntry, type ScVal, textOf } from "../xdr/Xdr.ts"

/** Contract calls within one another; the host function itself counts as one more frame of the network's hundred. */
const FRAMES_MAX = 98
/** Accounts sign a hash. */
const PAYLOAD_BYTES = 32

export class HostContext implements ContractHost {
  readonly input: HostInput
  readonly storage: Storage
  readonly auth: Auth
  readonly log = new EventLog()
  readonly meter: InstructionMeter
  readonly frames: Array<Frame> = []
  /** Contract frames opened so far, including those that have ended. */
  framesOpened = 0
  readonly accountAuth: AccountAuthHost
  /** The transaction's random generator, which seeds each frame's generator. */
  random: Random | undefined

  constructor(input: HostInput, storage: Storage) {
    this.input = input
    const { cpuCosts, limits } = input.settings
    this.meter = new InstructionMeter(cpuCosts, input.instructionsMax, limits.txMemoryBytesMax)
    this.storage = storage
    storage.begin(this.meter)
    this.accountAuth = {
      verify: (publicKey, message, signature) => this.verifyEd25519(publicKey, message, signature),
      require: (key) => storage.require(key),
      countSignature: () => chargeSignature(this.meter, PAYLOAD_BYTES)
    }
    this.auth = new Auth(this)
  }

  verifyEd25519(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
    return verifyEd25519(this.input.crypto, publicKey, message, signature)
  }

  countAddressAuth(): void {
    this.meter.spend(Price.accountAuth)
  }

  /** False for errors that no caller may catch: internal ones and exceeded limits of budget and footprint. */
  isRecoverable(error: HostError): boolean {
    if (error.errorType !== "Contract" && error.code === "InternalError") return false
    return !((error.errorType === "Storage" || error.errorType === "Budget") && error.code === "ExceededLimit")
  }

  get currentContract(): Uint8Array | null {
    return this.frames.at(-1)?.contractId ?? null
  }

  get callingContract(): Uint8Array | null {
    return this.frames.at(-2)?.contractId ?? null
  }

  get frame(): Frame {
    const frame = this.frames.at(-1)
    if (frame === undefined) throw HostError.of("Context", "InternalError", "no contract running")
    return frame
  }

  logError(error: HostError): void {
    this.log.failed(this.currentContract, error)
  }

  emit(topics: ReadonlyArray<ScVal>, data: ScVal): void {
    this.meter.spend(Price.event)
    for (const value of [...topics, data]) this.meter.spend(this.#emitted(value))
    this.log.contract(this.frame.contractId, topics, data)
  }

  /** The cost of a value within an event: lists are converted item by item. */
  #emitted(value: ScVal): number {
    if (value.type !== ScType.vec) return Price.eventValue * valuesIn(value)
    return Price.eventValue + Math.floor(new ValueCosts(this.meter.costs).fromHost(value))
  }

  /** Calls a contract by id. Rolls back the callee's changes before it throws the callee's error. */
  call(contractId: Uint8Array, fn: string, args: ReadonlyArray<ScVal>, options: CallOptions = {}): ScVal {
    if (fn.startsWith("__") && options.reserved !== true) {
      throw this.#logged(
        HostError.of("Context", "InvalidAction", "can't invoke a reserved function directly", [sym(fn)])
      )
    }
    this.#checkReentry(contractId, options.allowSelfReentry === true)
    this.meter.spend(Price.frame)
    for (const arg of args) this.meter.spend(Price.argument * objectsIn(arg))
    this.log.called(this.currentContract, contractId, fn, args)
    const frame = this.#open(contractId, fn, args, options)
    const value = this.#run(frame, options)
    this.log.returned(contractId, fn, value)
    return value
  }

  #logged(error: HostError): HostError {
    this.logError(error)
    return error
  }

  #checkReentry(contractId: Uint8Array, allowSelf: boolean): void {
    for (let i = this.frames.length - 1; i >= 0; i--) {
      if (!equalBytes(this.frames[i]!.contractId, contractId)) continue
      if (allowSelf && i === this.frames.length - 1) continue
      throw this.#logged(HostError.of("Context", "InvalidAction", "Contract re-entry is not allowed"))
    }
  }

  #open(contractId: Uint8Array, fn: string, args: ReadonlyArray<ScVal>, options: CallOptions): Frame {
    const instanceKey = contractInstanceKey(contractAddress(contractId))
    try {
      const entry = this.storage.require(instanceKey)
      const value = entry.data.type === EntryType.contractData ? entry.data.contractData.val : undefined
      if (value?.type !== ScType.contractInstance)
        throw HostError.of("Storage", "InternalError", "contract instance is malformed")
      return {
        contractId,
        fn,
        args,
        instance: value.instance,
        instanceKey,
        instanceStorage: value.instance.storage ?? [],
        instanceChanged: false,
        authCheck: options.authCheck
      }
    } catch (error) {
      if (error instanceof HostError) this.logError(error)
      throw error
    }
  }

  #run(frame: Frame, options: CallOptions): ScVal {
    if (this.frames.length >= FRAMES_MAX)
      throw this.#logged(HostError.of("Context", "ExceededLimit", "call stack is too deep"))
    this.storage.spendFrame()
    this.framesOpened++
    const parent = this.storage.store
    const events = this.log.length
    this.storage.store = parent.child()
    this.frames.push(frame)
    const rollback = this.auth.pushContract(contractAddress(frame.contractId), frame.fn)
    let done = false
    try {
      const value = this.#execute(frame, options)
      if (frame.instanceChanged) this.#storeInstance(frame)
      done = true
      return value
    } catch (error) {
      if (error instanceof HostError) this.logError(error)
      throw error
    } finally {
      if (done) this.storage.store.commit()
      else this.log.rollback(events)
      this.storage.store = parent
      this.frames.pop()
      this.auth.pop(done ? undefined : rollback)
    }
  }

  #execute(frame: Frame, options: CallOptions): ScVal {
    const { executable } = frame.instance
    switch (executable.type) {
      case ExecutableType.stellarAsset:
        if (frame.fn !== "init_asset") this.meter.spend(Price.assetFrame)
        return callSac(this, frame)
      default: {
        const { contracts } = this.input
        if (contracts === undefined) throw new Unsupported("contract wasm")
        const wasmHash = wasmHashOf(this, executable)!
        const code = this.#codeOf(wasmHash)
        if (code.data.type !== EntryType.contractCode)
          throw HostError.of("Storage", "InternalError", "contract code is malformed")
        return contracts.call(this, {
          contractId: frame.contractId,
          wasmHash,
          code: code.data.contractCode.code,
          isNew: this.isNewCode(code),
          fn: frame.fn,
          args: frame.args,
          missingIsNoop: options.missingIsNoop === true
        })
      }
    }
  }

  /** The code of the contract that begins; missing code is logged in the caller's frame. */
  #codeOf(wasmHash: Uint8Array): LedgerEntry {
    try {
      return this.storage.require(contractCodeKey(wasmHash))
    } catch (error) {
      if (error instanceof HostError) this.log.failed(this.callingContract, error)
      throw error
    }
  }

  /** True for code that was uploaded in this very ledger. */
  isNewCode(code: LedgerEntry): boolean {
    return (
      code.lastModifiedLedgerSeq === this.input.ledgerSeq &&
      this.input.restored?.has(keyString(keyOfEntry(code))) !== true
    )
  }

  #storeInstance(frame: Frame): void {
    const entry = this.storage.require(frame.instanceKey)
    if (entry.data.type !== EntryType.contractData)
      throw HostError.of("Storage", "InternalError", "contract instance is malformed")
    const storage = frame.instanceStorage.length === 0 ? null : (frame.instanceStorage as ScMapEntry[])
    // The instance may have been upgraded to other code by this very call; only its storage is ours to write.
    const current = entry.data.contractData.val
    const executable =
      current.type === ScType.contractInstance ? current.instance.executable : frame.instance.executable
    this.storage.put(frame.instanceKey, {
      type: 6,
      contractData: { ...entry.data.contractData, val: { type: 19, instance: { executable, storage } } }
    })
  }

  instanceGet(key: ScVal): ScVal | undefined {
    return this.frame.instanceStorage.find((entry) => compareScVal(entry.key, key) === 0)?.val
  }

  /**
   * Writes or, with undefined, removes a value in the current contract's instance storage; stored when the frame ends
   * well.
   */
  instancePut(key: ScVal, val: ScVal | undefined): void {
    const frame = this.frame
    const storage = frame.instanceStorage.filter((entry) => compareScVal(entry.key, key) !== 0)
    if (val !== undefined) {
      const at = storage.findIndex((entry) => compareScVal(entry.key, key) > 0)
      storage.splice(at < 0 ? storage.length : at, 0, { key, val })
    }
    frame.instanceStorage = storage
    frame.instanceChanged = true
  }

  /** Calls a contract account's `__check_auth`, which must return void. */
  callCheckAuth(contractId: Uint8Array, args: ReadonlyArray<ScVal>, authCheck: AuthCheck): void {
    const value = this.call(contractId, "__check_auth", args, { reserved: true, allowSelfReentry: true, authCheck })
    if (value.type !== ScType.void) throw HostError.of("Value", "UnexpectedType", "__check_auth must return void")
  }

  /** Calls the host's top-level contract function with arguments from the transaction. */
  invoke(contractId: Uint8Array, fn: XdrString, args: ReadonlyArray<ScVal>): ScVal {
    checkSymbol(fn.bytes)
    for (const arg of args) checkScVal(arg, this.input.settings.protocolVersion)
    return this.call(contractId, textOf(fn), args)
  }
}
