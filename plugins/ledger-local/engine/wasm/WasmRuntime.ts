// Contract wasm in the JavaScript engine's own WebAssembly, behind the host's interface. A module is instrumented once
// (fuel, bounded memory) and compiled once; each call gets a fresh instance, so nothing survives it but what it stored.
// A hostile module runs out of fuel or memory and fails like any other. A host function that is not implemented is
// `Unsupported`, when the module is called, never a failure of the contract.
import { HostError, Unsupported } from "../host/HostError.ts"
import type { ContractHost } from "../host/HostTypes.ts"
import type { ContractCall, ContractRuntime } from "../host/HostTypes.ts"
import { latin1, type ScVal } from "../xdr/Xdr.ts"
import { sym, VOID } from "../xdr/ScVal.ts"
import { Malformed } from "./BinaryReader.ts"
import { callFunctions } from "./callFunctions.ts"
import { collectionFunctions } from "./collectionFunctions.ts"
import { integerFunctions } from "./integerFunctions.ts"
import { ledgerFunctions } from "./ledgerFunctions.ts"
import { FUEL_EXPORT, type PreparedModule, prepareModule } from "./prepareModule.ts"
import { randomFunctions } from "./randomFunctions.ts"
import { VOID_WORD } from "./Values.ts"
import { CALL_FUEL, hostCallFuel, INSTANCE_FUEL } from "./hostCallFuel.ts"
import { type HostFunctions, Vm } from "./Vm.ts"

const functions: HostFunctions = {
  ...collectionFunctions,
  ...integerFunctions,
  ...ledgerFunctions,
  ...callFunctions,
  ...randomFunctions
}
const MODULES_MAX = 256
/** The metered cost of one wasm instruction. */
const INSTRUCTION_COST = 4

interface Compiled {
  readonly prepared: PreparedModule
  readonly module: WebAssembly.Module
  readonly imports: ReadonlyArray<readonly [module: string, name: string]>
}

const refused = (message: string): HostError => HostError.of("WasmVm", "InvalidAction", message)

const compile = (code: Uint8Array): Compiled => {
  try {
    const prepared = prepareModule(code)
    const module = new WebAssembly.Module(prepared.bytes as Uint8Array<ArrayBuffer>)
    return {
      prepared,
      module,
      imports: WebAssembly.Module.imports(module).map((entry) => [entry.module, entry.name] as const)
    }
  } catch (error) {
    if (error instanceof Malformed || error instanceof WebAssembly.CompileError)
      throw refused(`module is not acceptable: ${error.message}`)
    throw error
  }
}

const trapOf = (error: unknown, vm: Vm): unknown => {
  if (error instanceof HostError || error instanceof Unsupported) return error
  if (vm.fuel < 0) return HostError.of("Budget", "ExceededLimit", "instruction limit exceeded")
  if (error instanceof RangeError) return HostError.of("Budget", "ExceededLimit", "call stack exhausted")
  if (!(error instanceof WebAssembly.RuntimeError)) return error
  const { message } = error
  if (message.includes("out of bounds")) return HostError.of("WasmVm", "IndexBounds", "VM call trapped: out of bounds")
  if (message.includes("divide") || message.includes("remainder") || message.includes("unrepresentable")) {
    return HostError.of("WasmVm", "ArithDomain", "VM call trapped: arithmetic")
  }
  return HostError.of("WasmVm", "InvalidAction", "VM call trapped: UnreachableCodeReached")
}

export class WasmRuntime implements ContractRuntime {
  readonly #modules = new Map<string, Compiled>()

  #compiled(call: ContractCall): Compiled {
    const id = latin1(call.wasmHash)
    const known = this.#modules.get(id)
    if (known !== undefined) return known
    const compiled = compile(call.code)
    if (this.#modules.size >= MODULES_MAX) this.#modules.delete(this.#modules.keys().next().value as string)
    this.#modules.set(id, compiled)
    return compiled
  }

  readonly validate: ContractRuntime["validate"] = (code, settings) => {
    if (code.length > settings.limits.contractCodeBytesMax)
      throw HostError.of("Budget", "ExceededLimit", "contract code is too large")
    const { prepared } = compile(code)
    if (prepared.environmentProtocol > settings.protocolVersion) throw refused("contract is for a later protocol")
    return { v: 1, v1: { ext: { v: 0 }, costInputs: { ext: { v: 0 }, ...prepared.costInputs } } }
  }

  readonly call: ContractRuntime["call"] = (host, call) => {
    const compiled = this.#compiled(call)
    const arity = compiled.prepared.arity.get(call.fn)
    if (arity === undefined) {
      if (call.missingIsNoop) return VOID
      throw HostError.of("WasmVm", "MissingValue", "invoking unknown export", [sym(call.fn)])
    }
    if (arity !== call.args.length)
      throw HostError.of("WasmVm", "UnexpectedSize", "VM call failed: number of arguments")
    return run(host, call, compiled)
  }
}

/** An instance, or the network's error when a data or element segment lies outside of what it should fill. */
const instantiate = (module: WebAssembly.Module, imports: WebAssembly.Imports): WebAssembly.Instance => {
  try {
    return new WebAssembly.Instance(module, imports)
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) throw refused("module cannot be instantiated")
    if (error instanceof RangeError) throw HostError.of("Budget", "ExceededLimit", "no memory for an instance")
    throw error
  }
}

const run = (host: ContractHost, call: ContractCall, { module, imports }: Compiled): ScVal => {
  host.meter.payFuel(INSTANCE_FUEL)
  let vm: Vm | undefined
  const object: Record<string, Record<string, (...args: Array<bigint>) => bigint>> = {}
  for (const [from, name] of imports) {
    const id = `${from}.${name}`
    const fn = functions[id]
    if (fn === undefined) throw new Unsupported(`host function ${id}`)
    const fuel = hostCallFuel(id)
    const target = (object[from] ??= {})
    target[name] = (...args) => {
      const running = vm!
      running.pay(CALL_FUEL)
      running.payHost(fuel)
      const result = fn(running, ...args)
      return result === undefined ? VOID_WORD : typeof result === "bigint" ? result : running.values.word(result)
    }
  }
  const instance = instantiate(module, object)
  const { exports } = instance
  const memory = exports["memory"]
  vm = new Vm(
    host,
    exports[FUEL_EXPORT] as WebAssembly.Global,
    memory instanceof WebAssembly.Memory ? memory : undefined
  )
  const { fuel: before, hostFuel } = host.meter
  vm.fuel = before
  try {
    const fn = exports[call.fn] as (...args: ReadonlyArray<bigint>) => unknown
    const word = fn(...call.args.map((arg) => vm.values.word(arg)))
    if (typeof word !== "bigint") throw HostError.of("WasmVm", "UnexpectedSize", "VM call failed: no result")
    return resultOf(vm.whole(word))
  } catch (error) {
    throw trapOf(error, vm)
  } finally {
    vm.release()
    host.meter.fuel = Math.max(0, vm.fuel)
    host.meter.add((before - host.meter.fuel - (host.meter.hostFuel - hostFuel)) * INSTRUCTION_COST)
  }
}

/** A returned error value fails the call: a contract's own as it is, any other as an invalid action. */
const resultOf = (value: ScVal): ScVal => {
  if (value.type !== 2) return value
  if (value.error.type === 0)
    throw HostError.contract(value.error.contractCode, "escalating Ok(ScErrorType::Contract) frame-exit to Err")
  throw HostError.of("Context", "InvalidAction", "frame-exit with an error that is no contract error")
}
