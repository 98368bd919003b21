// A ledger for hostile contracts: each module of a batch is simulated, uploaded, created and called by its own account,
// with handmade resources, so that it reaches the ledger even if the simulation refused it. Forbidden events are
// recorded as breaches; the slowest answer and the slowest ledger are measured in processor time, without a limit here.
import { Effect, Layer, ManagedRuntime } from "effect"
import type { LocalLedgerOptions } from "../../plugins/ledger-local/LocalLedger.ts"
import { LocalLedger } from "../../plugins/ledger-local/LocalLedger.ts"
import { contractIdOf } from "../../plugins/ledger-local/engine/host/createContract.ts"
import { contractCodeKey, contractInstanceKey } from "../../plugins/ledger-local/engine/state/LedgerKeys.ts"
import {
  codec,
  contractAddress,
  type HostFunction,
  type LedgerKey,
  publicKey,
  type PublicKey,
  type ScAddress,
  type SorobanAuthorizationEntry,
  type TransactionEnvelope,
  xdrText
} from "../../plugins/ledger-local/engine/xdr/Xdr.ts"
import { codecs, TxCode } from "../../plugins/ledger-local/transaction/Wire.ts"
import { layer as nodeCrypto } from "../../runtime/platform/nodeCrypto.ts"
import { layer as nodeDeadline } from "../../runtime/platform/nodeDeadline.ts"
import process from "node:process"
import { engineCrypto } from "../support/engineCrypto.ts"

/** Processor time of this process in milliseconds, independent of the machine's other work. */
export const processorMillis = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

interface Author {
  readonly seed: Uint8Array
  readonly id: PublicKey
  readonly address: ScAddress
  sequence: bigint
}

/** The result of a batch. */
export interface Outcome {
  readonly breaches: ReadonlyArray<string>
  readonly modules: number
  /** Modules that were uploaded, created and called with success. */
  readonly uploaded: number
  readonly ran: number
  readonly slowestAnswerMillis: number
  readonly slowestCloseMillis: number
}

const BALANCE_STROOPS = 10_000_000_0000000n
const RESOURCE_FEE_STROOPS = 500_000_000n
const FEE_STROOPS = 500_001_000
/**
 * Instructions that a call may use: a twentieth of the network's limit for one transaction, so that a run does not
 * consist only of endless loops.
 */
const INSTRUCTIONS = 20_000_000

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")

type Step = "upload" | "create" | "call"
const steps = ["upload", "create", "call"] as const

/** A ledger in memory that retains little and runs its contracts with a deadline. */
export const fuzzLayer = (options: LocalLedgerOptions) =>
  LocalLedger.layerTest({ retentionLedgers: 16, retentionTransactions: 400, ...options }).pipe(
    Layer.provideMerge(nodeCrypto),
    Layer.provide(nodeDeadline)
  )

export class FuzzLedger {
  readonly #runtime: ManagedRuntime.ManagedRuntime<LocalLedger, never>
  readonly #ledger: LocalLedger["Service"]
  readonly #authors: ReadonlyArray<Author>
  #salt = 0
  #breaches: Array<string> = []
  #slowestAnswerMillis = 0

  private constructor(
    runtime: ManagedRuntime.ManagedRuntime<LocalLedger, never>,
    ledger: LocalLedger["Service"],
    authors: ReadonlyArray<Author>
  ) {
    this.#runtime = runtime
    this.#ledger = ledger
    this.#authors = authors
    const reported = ledger.ledger.report.bind(ledger.ledger)
    ledger.ledger.report = (during, error) => {
      this.#breach(
        `a defect while ${during}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
      )
      reported(during, error)
    }
  }

  /** A ledger that tests `size` modules at a time. */
  static async open(size: number, options: LocalLedgerOptions = {}): Promise<FuzzLedger> {
    const runtime = ManagedRuntime.make(fuzzLayer(options))
    const ledger = await runtime.runPromise(LocalLedger)
    const { store, latest } = ledger.ledger
    const authors = Array.from({ length: size }, (_, i): Author => {
      const seed = new Uint8Array(32).fill(i + 1)
      const id = publicKey(engineCrypto.ed25519PublicKey(seed))
      return { seed, id, address: { type: 0, accountId: id }, sequence: BigInt(latest.sequence) << 32n }
    })
    for (const { id, sequence } of authors) {
      const account = {
        accountId: id,
        balance: BALANCE_STROOPS,
        seqNum: sequence,
        numSubEntries: 0,
        inflationDest: null,
        flags: 0,
        homeDomain: xdrText(""),
        thresholds: new Uint8Array([1, 0, 0, 0]),
        signers: [],
        ext: { v: 0 as const }
      }
      store.put({ lastModifiedLedgerSeq: latest.sequence, data: { type: 0, account }, ext: { v: 0 } })
    }
    return new FuzzLedger(runtime, ledger, authors)
  }

  close(): Promise<void> {
    return this.#runtime.dispose()
  }

  #breach(what: string): void {
    this.#breaches.push(what)
  }

  async #ask(method: string, params: object): Promise<any> {
    const started = processorMillis()
    const answer = await this.#runtime.runPromise(
      Effect.orDie(this.#ledger.rpc({ jsonrpc: "2.0", id: 1, method, params }))
    )
    this.#slowestAnswerMillis = Math.max(this.#slowestAnswerMillis, processorMillis() - started)
    if (answer.error !== undefined) this.#breach(`${method} is answered with ${JSON.stringify(answer.error)}`)
    return answer.result ?? {}
  }

  /** Tests each module; there are at most as many as authors. */
  async run(modules: ReadonlyArray<Uint8Array>): Promise<Outcome> {
    this.#breaches = []
    this.#slowestAnswerMillis = 0
    this.#salt++
    let slowestCloseMillis = 0
    const succeeded: Record<Step, number> = { upload: 0, create: 0, call: 0 }
    for (const step of steps) {
      const sent: Array<string> = []
      for (const [i, wasm] of modules.entries()) {
        const author = this.#authors[i]!
        const unsigned = this.#envelope(author, wasm, step, author.sequence + 1n, false)
        await this.#simulate(unsigned)
        const answer = await this.#ask("sendTransaction", {
          transaction: base64(
            codec.TransactionEnvelope.encode(this.#envelope(author, wasm, step, ++author.sequence, true))
          )
        })
        if (answer.status === "PENDING") sent.push(answer.hash as string)
        else {
          author.sequence--
          if (wasm.length > 0) this.#breach(`sendTransaction answers ${answer.status} ${answer.errorResultXdr ?? ""}`)
        }
      }
      slowestCloseMillis = Math.max(slowestCloseMillis, await this.#closeLedger(sent, succeeded, step))
    }
    await this.#ask("getHealth", {})
    return {
      breaches: this.#breaches,
      modules: modules.length,
      uploaded: succeeded.upload,
      ran: succeeded.call,
      slowestAnswerMillis: this.#slowestAnswerMillis,
      slowestCloseMillis
    }
  }

  async #simulate(envelope: TransactionEnvelope): Promise<void> {
    const transaction = base64(codec.TransactionEnvelope.encode(envelope))
    const { error } = await this.#ask("simulateTransaction", { transaction })
    if (error !== undefined && /Context, InternalError/.test(error)) this.#breach(`a simulation says ${error}`)
  }

  async #closeLedger(sent: ReadonlyArray<string>, succeeded: Record<Step, number>, step: Step): Promise<number> {
    const before = this.#ledger.ledger.latest.sequence
    const started = processorMillis()
    const sequence = await this.#runtime.runPromise(this.#ledger.close)
    const millis = processorMillis() - started
    if (sequence !== before + 1) this.#breach("the ledger did not close")
    for (const hash of sent) {
      const { status, resultXdr } = await this.#ask("getTransaction", { hash })
      if (status === "SUCCESS") succeeded[step]++
      else if (status !== "FAILED") this.#breach(`a transaction is ${status} after its ledger`)
      else {
        const { code } = codecs.TransactionResult.decode(Buffer.from(resultXdr, "base64")).result
        if (code === TxCode.internalError) this.#breach("a transaction ended with an internal error")
      }
    }
    return millis
  }

  #envelope(author: Author, wasm: Uint8Array, step: Step, sequence: bigint, signed: boolean): TransactionEnvelope {
    const { networkId } = this.#ledger.ledger.options
    const hash = engineCrypto.sha256(wasm)
    const salt = new Uint8Array(32)
    new DataView(salt.buffer).setUint32(0, this.#salt)
    const contractIdPreimage = { type: 0 as const, fromAddress: { address: author.address, salt } }
    const id = contractIdOf(engineCrypto, networkId, contractIdPreimage)
    const contract = contractAddress(id)
    const [code, instance] = [contractCodeKey(hash), contractInstanceKey(contract)]
    const create = { contractIdPreimage, executable: { type: 0 as const, wasmHash: hash } }
    const hostFunction: HostFunction =
      step === "upload"
        ? { type: 2, wasm }
        : step === "create"
          ? { type: 1, createContract: create }
          : { type: 0, invokeContract: { contractAddress: contract, functionName: xdrText("run"), args: [] } }
    const auth: Array<SorobanAuthorizationEntry> =
      step === "create" && signed
        ? [
            {
              credentials: { type: 0 },
              rootInvocation: { function: { type: 1, createContractHostFn: create }, subInvocations: [] }
            }
          ]
        : []
    const footprints: Record<Step, { readOnly: Array<LedgerKey>; readWrite: Array<LedgerKey> }> = {
      upload: { readOnly: [], readWrite: [code] },
      create: { readOnly: [code], readWrite: [instance] },
      call: { readOnly: [code], readWrite: [instance] }
    }
    const resources = {
      footprint: footprints[step],
      instructions: INSTRUCTIONS,
      diskReadBytes: 10_000,
      writeBytes: 130_000
    }
    const sorobanData = { ext: { v: 0 as const }, resources, resourceFee: RESOURCE_FEE_STROOPS }
    const tx = {
      sourceAccount: { type: 0 as const, ed25519: author.id.ed25519 },
      fee: FEE_STROOPS,
      seqNum: sequence,
      cond: { type: 0 as const },
      memo: { type: 0 as const },
      operations: [{ sourceAccount: null, body: { type: 24 as const, invokeHostFunctionOp: { hostFunction, auth } } }],
      ext: { v: 1 as const, sorobanData }
    }
    if (!signed) return { type: 2, v1: { tx, signatures: [] } }
    const payload = codec.TransactionSignaturePayload.encode({ networkId, taggedTransaction: { type: 2, tx } })
    const signature = engineCrypto.ed25519Sign(author.seed, engineCrypto.sha256(payload))
    return { type: 2, v1: { tx, signatures: [{ hint: author.id.ed25519.slice(-4), signature }] } }
  }
}
