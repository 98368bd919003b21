// Contract wasm in the JavaScript engine's WebAssembly, behind the host's interface. A module is instrumented once
// (fuel, bounded memory) and compiled once. Each call gets a fresh instance, so only stored data survives it. A hostile
// module runs out of fuel, memory or time and fails like any other. A missing host function is `Unsupported`, when the
// module is called, never a failure of the contract.
import { ScErrorType, ScType } from "../xdr/types.ts"
import { DeadlinePassed, type RunWithin } from "../../../../kernel/platform/Deadline.ts"
import { LruCache } from "../../../../kernel/cache/LruCache.ts"
import { HostError, type HostErrorCode, Unsupported } from "../host/HostError.ts"
import { NotFetched } from "../state/Store.ts"
import type { ContractCall, ContractHost, ContractModule, ContractRuntime } from "../host/HostTypes.ts"
import { latin1, type ScVal } from "../xdr/Xdr.ts"
import { str, sym, VOID } from "../xdr/ScVal.ts"
import { Malformed } from "./BinaryReader.ts"
import { callFunctions } from "./callFunctions.ts"
import { collectionFunctions } from "./collectionFunctions.ts"
import { curveFunctions } from "./curveFunctions.ts"
import { integerFunctions } from "./integerFunctions.ts"
import { ledgerFunctions } from "./ledgerFunctions.ts"
import { FUEL_EXPORT, type PreparedModule, prepareModule } from "./prepareModule.ts"
import { poseidonFunctions } from "./poseidonFunctions.ts"
import { randomFunctions } from "./randomFunctions.ts"
import { checkProtocol } from "./hostImports.ts"
import { hostFunctionName } from "./hostFunctionNames.ts"
import { hostFunctionPrice } from "../host/instructionPrices.ts"
import { chargeInstance } from "./moduleCosts.ts"
import { hostCallWork, INSTANCE_WORK } from "./hostCallWork.ts"
import { ValueType } from "./opcodes.ts"
import { chargeSizes } from "./sizeCosts.ts"
import { type HostFunctions, Vm } from "./Vm.ts"

const functions: HostFunctions = {
  ...collectionFunctions,
  ...integerFunctions,
  ...ledgerFunctions,
  ...callFunctions,
  ...curveFunctions,
  ...poseidonFunctions,
  ...randomFunctions
}
const MODULES_MAX = 256

interface CompiledModule {
  readonly prepared: PreparedModule
  readonly module: WebAssembly.Module
}

const refused = (message: string, code: "InvalidAction" | "InvalidInput" = "InvalidAction"): HostError =>
  HostError.of("WasmVm", code, message)

const compile = (code: Uint8Array): CompiledModule => {
  try {
    const prepared = prepareModule(code)
    return { prepared, module: new WebAssembly.Module(prepared.bytes as Uint8Array<ArrayBuffer>) }
  } catch (error) {
    if (error instanceof Malformed) throw refused(`module is not acceptable: ${error.message}`, error.code)
    if (error instanceof WebAssembly.CompileError) throw refused(`module is not acceptable: ${error.message}`)
    throw error
  }
}

/** Refuses a module of another protocol than the ledger's or an earlier one. */
const checkEnvironment = ({ environmentProtocol, prerelease, imports }: PreparedModule, protocol: number): void => {
  if (environmentProtocol > protocol) throw refused("contract protocol number is newer than host", "InvalidInput")
  if (prerelease !== 0) throw refused("contract pre-release number does not match host", "InvalidInput")
  checkProtocol(imports, Math.min(environmentProtocol, protocol))
}

const trap = (code: HostErrorCode, what: string, fn: string): HostError =>
  HostError.of("WasmVm", code, `VM call trapped: ${what}`, [sym(fn)])

/** The network's error for the error that ended a contract's function `fn`. */
const trapOf = (error: unknown, vm: Vm, fn: string): unknown => {
  if (error instanceof HostError || error instanceof Unsupported || error instanceof NotFetched) return error
  if (vm.isEmpty) return HostError.of("Budget", "ExceededLimit", "VM call trapped: OutOfFuel", [sym(fn)])
  if (error instanceof RangeError)
    return HostError.of("Budget", "ExceededLimit", "VM call trapped: StackOverflow", [sym(fn)])
  if (!(error instanceof WebAssembly.RuntimeError)) return error
  const { message } = error
  if (message.includes("table index")) return trap("IndexBounds", "TableOutOfBounds", fn)
  if (message.includes("out of bounds")) return trap("IndexBounds", "MemoryOutOfBounds", fn)
  if (message.includes("null function")) return trap("MissingValue", "IndirectCallToNull", fn)
  if (message.includes("signature mismatch")) return trap("UnexpectedType", "BadSignature", fn)
  if (message.includes("by zero")) return trap("ArithDomain", "IntegerDivisionByZero", fn)
  if (message.includes("unrepresentable")) return trap("ArithDomain", "IntegerOverflow", fn)
  return trap("InvalidAction", "UnreachableCodeReached", fn)
}

/** How long contracts may run for one host function call, and how they are stopped. */
interface TimeLimit {
  readonly millis: number
  readonly runWithin: RunWithin
}

export class WasmRuntime implements ContractRuntime {
  readonly #modules = new LruCache<string, CompiledModule>({ name: "wasm-modules", capacity: MODULES_MAX })
  readonly #limit: TimeLimit | undefined
  readonly #observe: Observe | undefined
  #isLimited = false

  /** `observe` is called for each call of a host function. */
  constructor(limit?: TimeLimit, observe?: Observe) {
    this.#limit = limit
    this.#observe = observe
  }

  /** Within the time limit, which holds for everything that runs within. */
  #limited<A>(work: () => A): A {
    if (this.#limit === undefined || this.#isLimited) return work()
    this.#isLimited = true
    try {
      return this.#limit.runWithin(this.#limit.millis, work)
    } catch (error) {
      if (error instanceof DeadlinePassed) throw HostError.of("Budget", "ExceededLimit", "time limit exceeded")
      throw error
    } finally {
      this.#isLimited = false
    }
  }

  #compiled(call: ContractModule): CompiledModule {
    const id = latin1(call.wasmHash)
    const cachedModule = this.#modules.get(id)
    if (cachedModule !== undefined) return cachedModule
    const compiled = compile(call.code)
    this.#modules.set(id, compiled)
    return compiled
  }

  readonly validate: ContractRuntime["validate"] = (host, code) => {
    const { settings } = host.input
    if (code.length > settings.limits.contractCodeBytesMax)
      throw HostError.of("Budget", "ExceededLimit", "contract code is too large")
    const { costInputs, memoryBytes } = this.#limited(() => checkedCode(code, settings.protocolVersion))
    host.meter.growMemory(memoryBytes)
    return { v: 1, v1: { ext: { v: 0 }, costInputs: { ext: { v: 0 }, ...costInputs } } }
  }

  readonly protocolOf: ContractRuntime["protocolOf"] = (host, module) => {
    const { prepared } = this.#limited(() => this.#compiled(module))
    chargeInstance(host, prepared.costInputs, module)
    host.meter.growMemory(prepared.memoryBytes)
    return prepared.environmentProtocol
  }

  readonly call: ContractRuntime["call"] = (host, call) => this.#limited(() => this.#call(host, call))

  #call(host: ContractHost, call: ContractCall): ScVal {
    const compiled = this.#compiled(call)
    checkEnvironment(compiled.prepared, host.input.settings.protocolVersion)
    chargeInstance(host, compiled.prepared.costInputs, call)
    chargeMemory(host, compiled.prepared.memoryBytes)
    host.meter.charge(host.meter.costs.invokeVmFunction)
    const type = compiled.prepared.exports.get(call.fn)
    if (type === undefined) {
      if (call.missingIsNoop) return VOID
      throw HostError.of("WasmVm", "MissingValue", "trying to invoke non-existent contract function", [sym(call.fn)])
    }
    const { parameters, results } = type
    if (parameters.length !== call.args.length || results.length !== 1)
      throw HostError.of("WasmVm", "UnexpectedSize", "VM call failed: Func(MismatchingParameterLen)", [sym(call.fn)])
    if (![...parameters, ...results].every((each) => each === ValueType.i64))
      throw HostError.of("WasmVm", "UnexpectedType", "VM call failed: type of arguments")
    return run(host, call, compiled, this.#observe)
  }
}

/** An instance's initial memory; exceeding the limit is logged in the caller's frame. */
const chargeMemory = (host: ContractHost, bytes: number): void => {
  try {
    host.meter.growMemory(bytes)
  } catch (error) {
    if (!(error instanceof HostError)) throw error
    host.log.failed(host.callingContract, error.saying("Memory(OutOfBoundsGrowth)"))
    throw error
  }
}

/** The network links and instantiates new code once, to see that it can be. */
const checkedCode = (code: Uint8Array, protocol: number): PreparedModule => {
  const { prepared, module } = compile(code)
  checkEnvironment(prepared, protocol)
  const imports = importObject(prepared, () => unreachable)
  instantiate(module, imports)
  return prepared
}

type WasmFunction = (...args: Array<bigint>) => bigint

const TRAPPED = str("VM call trapped with HostError")

/** A host function's error ends the contract that called it; the network reports this in addition to the error. */
const escalating = <A>(vm: Vm, id: string, work: () => A): A => {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof HostError)) throw error
    vm.host.logError(error)
    const words = `escalating error to VM trap from failed host function call: ${hostFunctionName(id)}`
    vm.host.logError(error.saying(words))
    throw error
  }
}

const unreachable: WasmFunction = () => {
  throw new Error("no contract runs while its code is checked")
}

const importObject = ({ imports }: PreparedModule, make: (id: string) => WasmFunction): WebAssembly.Imports => {
  const object: Record<string, Record<string, WasmFunction>> = {}
  for (const { module, name } of imports) (object[module] ??= {})[name] = make(`${module}.${name}`)
  return object
}

/** An instance, or the network's error when a data or element segment exceeds the memory or table that it fills. */
const instantiate = (module: WebAssembly.Module, imports: WebAssembly.Imports): WebAssembly.Instance => {
  try {
    return new WebAssembly.Instance(module, imports)
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) throw refused("module cannot be instantiated")
    if (error instanceof RangeError) throw HostError.of("Budget", "ExceededLimit", "no memory for an instance")
    throw error
  }
}

/** By its short name, such as `l.1`. */
type Observe = (hostFunction: string) => void

const run = (
  host: ContractHost,
  call: ContractCall,
  { module, prepared }: CompiledModule,
  observe: Observe | undefined
): ScVal => {
  host.meter.payWork(INSTANCE_WORK)
  let vm: Vm | undefined
  const imports = importObject(prepared, (id) => {
    const fn = functions[id]
    if (fn === undefined) throw new Unsupported(`host function ${id}`)
    const [work, price] = [hostCallWork(id), hostFunctionPrice(id)]
    return (...args) => {
      const running = vm!
      if (observe !== undefined) observe(id)
      running.pause()
      running.payWork(work)
      const word = escalating(running, id, () => {
        host.meter.spend(price)
        const result = fn(running, ...args)
        if (typeof result === "bigint") return result
        const value = result ?? VOID
        const word = running.values.word(value)
        chargeSizes(running, id, args, value, word)
        return word
      })
      running.resume()
      return word
    }
  })
  const { exports } = instantiate(module, imports)
  const memory = exports["memory"]
  const fuel = exports[FUEL_EXPORT] as WebAssembly.Global
  vm = new Vm(host, fuel, memory instanceof WebAssembly.Memory ? memory : undefined, prepared.memoryBytes)
  vm.resume()
  try {
    const word = enter(vm, call, exports[call.fn] as WasmFunction)
    vm.pause()
    vm.settle()
    return resultOf(vm.whole(word))
  } finally {
    vm.release()
  }
}

/** Runs the contract's function; errors, those of host functions included, are reported as the network reports them. */
const enter = (vm: Vm, call: ContractCall, fn: WasmFunction): bigint => {
  try {
    return fn(...call.args.map((arg) => vm.values.word(arg)))
  } catch (error) {
    const ended = trapOf(error, vm, call.fn)
    const { log, meter } = vm.host
    if (vm.isEmpty) meter.exhaust()
    else vm.pause()
    if (error instanceof HostError) {
      vm.host.logError(error)
      if (!meter.isOutOfMemory)
        log.message(call.contractId, TRAPPED, [sym(call.fn), { type: ScType.error, error: error.scError }])
    }
    throw ended
  }
}

/** A returned error value fails the call: a contract's error unchanged, any other as an invalid action. */
const resultOf = (value: ScVal): ScVal => {
  if (value.type !== ScType.error) return value
  if (value.error.type === ScErrorType.contract)
    throw HostError.contract(value.error.contractCode, "escalating Ok(ScErrorType::Contract) frame-exit to Err")
  throw HostError.of("Context", "InvalidAction", "frame-exit with an error that is no contract error")
}
