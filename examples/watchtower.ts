// A watchtower: it holds vouchers and signed claims of sellers, reads their channels on the ledger, and submits a claim
// when a payer has started a withdrawal, even while seller and facilitator are down. It holds no seller's key. Its own
// account pays the network fee: the contract lets anyone submit a claim, while a transaction signed in advance would be
// bound to one sequence number, footprint and fee. Bounds of fees, of a day's spending and of the gain keep a hostile
// file from emptying that account. Its transactions authorize nothing, so no contract can use its account either.
import {
  Account,
  Address,
  hash,
  Keypair,
  Networks,
  Operation,
  rpc,
  TransactionBuilder,
  xdr
} from "@stellar/stellar-sdk"
import { encodeValue, type Value } from "../kernel/stellar/Value.ts"
import {
  batchWasmHash,
  channelKey,
  type ChannelState,
  channelStateOf,
  claimArgs
} from "../plugins/x402-batch/contract.ts"
import { signerOf } from "./batch/vouchers.ts"
import {
  isProof,
  readWatchFile,
  signProof,
  type SignedClaim,
  type WatchFile,
  type WatchProof
} from "./batch/watchFile.ts"

export { isProof }

export interface WatchtowerOptions {
  /** Of a small account that pays fees, and signs proofs. */
  readonly secret: string
  /** Ledger RPCs. A withdrawal that any of them shows is answered. */
  readonly rpcUrls: ReadonlyArray<string>
  /** Maximum fee of one claim, stroops; default 1,000,000. */
  readonly feeMax?: bigint
  /** Maximum fees in 24 hours, stroops; default 50,000,000. */
  readonly spendMax?: bigint
  /** Minimum gain of a claim, atomic units; default 1. */
  readonly gainMin?: bigint
  /** sha256, hex, of the only contract code that it calls; default this project's. */
  readonly wasmHash?: string
  /** Gets each proof before the next claim. */
  readonly keep: (proof: WatchProof) => Promise<void>
  readonly report: (line: string) => void
}

const readMax = 200
/** Bid for inclusion, stroops; the network charges what it needs. */
const inclusionStroops = 10_000n
const dayMillis = 86_400_000
/** Pause after a failed claim of a channel. */
const pauseMillis = 60_000
const claimTries = 30
/** Claims that expire earlier are reported, seconds. */
const warnSeconds = 259_200

interface Started {
  readonly channelId: string
  readonly claim: SignedClaim
  readonly state: ChannelState
  readonly server: rpc.Server
}

const claimValues = ({ claimAuthorizerSignature, expiresAt, signature, totalClaimed, voucher }: SignedClaim) => {
  const { channel: config, maxClaimableAmount } = voucher
  const entry = {
    config,
    maxClaimableAmount: BigInt(maxClaimableAmount),
    signature,
    totalClaimed: BigInt(totalClaimed)
  }
  return claimArgs([entry], expiresAt, claimAuthorizerSignature)
}

export class Watchtower {
  #file: WatchFile | undefined
  readonly #options: WatchtowerOptions
  readonly #servers: ReadonlyArray<rpc.Server>
  readonly #recognized = new Set<string>()
  readonly #resting = new Map<string, number>()
  #spent: ReadonlyArray<{ readonly at: number; readonly stroops: bigint }> = []

  constructor(options: WatchtowerOptions) {
    this.#options = options
    this.#servers = options.rpcUrls.map((url) => new rpc.Server(url, { allowHttp: url.startsWith("http:") }))
  }

  /** Takes a file; a text that cannot be read leaves the earlier one. */
  load(text: string): void {
    const { report } = this.#options
    try {
      const file = readWatchFile(text)
      this.#file = file
      const { claims, refused } = file
      const soon = Date.now() / 1_000 + warnSeconds
      const ending = [...claims.values()].filter(({ expiresAt }) => expiresAt < soon).length
      const faults = [
        ...(refused === 0 ? [] : [`${refused} entries are not valid`]),
        ...(ending === 0 ? [] : [`${ending} claims expire within three days: export again`])
      ]
      report([`watching ${claims.size} channels`, ...faults].join("; "))
    } catch (error) {
      report(`the file was not read, the earlier one stays: ${String((error as Error).message)}`)
    }
  }

  /** Answers the started withdrawals, the first to end first. Returns the proofs. */
  async turn(): Promise<ReadonlyArray<WatchProof>> {
    const file = this.#file
    if (file === undefined || file.claims.size === 0) return []
    const started = new Map<string, Started>()
    let read = 0
    for (const server of this.#servers) {
      const found = await this.#started(server, file).catch((error) =>
        this.#options.report(`a ledger RPC does not answer: ${String(error?.message ?? error)}`)
      )
      if (found !== undefined) read++
      for (const one of found ?? []) started.set(one.channelId, one)
    }
    if (read === 0) throw new Error("no ledger RPC answers: withdrawals are not watched")
    const endsAt = ({ claim, state }: Started) => state.withdrawRequestedAt + claim.voucher.channel.withdrawDelay
    const proofs: Array<WatchProof> = []
    for (const one of [...started.values()].toSorted((a, b) => endsAt(a) - endsAt(b))) {
      const proof = await this.#answer(file, one).catch((error) => this.#rest(one, String(error?.message ?? error)))
      if (proof !== undefined) proofs.push(proof)
    }
    return proofs
  }

  /** Channels with a started withdrawal and a higher total in the file. */
  async #started(server: rpc.Server, { claims, contract, network }: WatchFile): Promise<ReadonlyArray<Started>> {
    const { passphrase } = await server.getNetwork()
    if (passphrase !== this.#passphrase(network)) throw new Error(`it is not of ${network}`)
    const ids = [...claims.keys()]
    const found: Array<Started> = []
    for (let at = 0; at < ids.length; at += readMax) {
      const byKey = new Map(ids.slice(at, at + readMax).map((id) => [channelKey(contract, id), id]))
      const keys = [...byKey.keys()].map((key) => xdr.LedgerKey.fromXdr(key, "base64"))
      for (const { key, val } of (await server.getLedgerEntries(...keys)).entries) {
        const channelId = byKey.get(key.toXdr("base64"))
        const value = xdr.ScVal.schema.decode((val.value as any).val.toXdr()) as unknown as Value
        const [claim, state] = [claims.get(channelId ?? ""), channelStateOf(value)]
        if (channelId === undefined || claim === undefined || state === undefined) continue
        if (state.withdrawRequestedAt === 0 || BigInt(claim.totalClaimed) <= state.totalClaimed) continue
        if ((this.#resting.get(channelId) ?? 0) <= Date.now()) found.push({ channelId, claim, state, server })
      }
    }
    return found
  }

  #passphrase(network: string): string {
    return network.endsWith(":pubnet") ? Networks.PUBLIC : Networks.TESTNET
  }

  #rest({ channelId }: Started, why: string): undefined {
    this.#resting.set(channelId, Date.now() + pauseMillis)
    this.#options.report(`channel ${channelId} is not claimed now: ${why}`)
  }

  async #answer(file: WatchFile, started: Started): Promise<WatchProof | undefined> {
    const { channelId, claim, server, state } = started
    const { gainMin = 1n, keep, report, secret } = this.#options
    const gain = BigInt(claim.totalClaimed) - state.totalClaimed
    if (gain < gainMin) return this.#rest(started, `its gain is only ${gain}`)
    await this.#recognize(server, file.contract)
    const transaction = await this.#prepared(server, file, claim)
    const sent = await server.sendTransaction(transaction)
    if (sent.status === "ERROR") return this.#rest(started, `the transaction was refused: ${sent.hash}`)
    this.#spent = [...this.#spent, { at: Date.now(), stroops: BigInt(transaction.fee) }]
    const ended = await server.pollTransaction(sent.hash, { attempts: claimTries, sleepStrategy: () => 1_000 })
    if (ended.status !== rpc.Api.GetTransactionStatus.SUCCESS)
      return this.#rest(started, `${sent.hash} did not succeed`)
    if (ended.returnValue?.value === 0) return this.#rest(started, "another has claimed it")
    const proof = signProof(signerOf(secret), {
      ...{ network: file.network, contract: file.contract, channelId, config: claim.voucher.channel },
      ...{ withdrawRequestedAt: state.withdrawRequestedAt, claimedBefore: String(state.totalClaimed) },
      ...{ claimedAfter: claim.totalClaimed, transaction: sent.hash, ledger: ended.ledger, closedAt: ended.createdAt }
    })
    await keep(proof)
    report(`channel ${channelId}: ${gain} claimed for ${claim.voucher.channel.receiver} by ${sent.hash}`)
    return proof
  }

  /** A signed transaction within the bounds of fees; throws beyond them. */
  async #prepared(server: rpc.Server, { contract, network }: WatchFile, claim: SignedClaim) {
    const { feeMax = 1_000_000n, secret, spendMax = 50_000_000n } = this.#options
    const keypair = Keypair.fromSecret(secret)
    const source = new Account(keypair.publicKey(), (await server.getAccount(keypair.publicKey())).sequenceNumber())
    const call = new xdr.InvokeContractArgs({
      contractAddress: new Address(contract).toScAddress(),
      functionName: "claim",
      args: claimValues(claim).map((value) => xdr.ScVal.fromXdr(encodeValue(value)))
    })
    const func = xdr.HostFunction.hostFunctionTypeInvokeContract(call)
    const asked = new TransactionBuilder(source, {
      fee: String(inclusionStroops),
      networkPassphrase: this.#passphrase(network)
    })
      .addOperation(Operation.invokeHostFunction({ func, auth: [] }))
      .setTimeout(60)
      .build()
    const simulated = await server.simulateTransaction(asked)
    if (!rpc.Api.isSimulationSuccess(simulated)) throw new Error(`the simulation failed: ${simulated.error}`)
    if ((simulated.result?.auth.length ?? 0) > 0) throw new Error("the contract asks for an authorization")
    const transaction = rpc.assembleTransaction(asked, simulated).build()
    const fee = BigInt(transaction.fee)
    if (fee > feeMax) throw new Error(`its fee of ${fee} stroops is above the bound`)
    this.#spent = this.#spent.filter(({ at }) => at > Date.now() - dayMillis)
    const spent = this.#spent.reduce((sum, { stroops }) => sum + stroops, fee)
    if (spent > spendMax) throw new Error("the fees of a day are spent")
    transaction.sign(keypair)
    return transaction
  }

  async #recognize(server: rpc.Server, contract: string): Promise<void> {
    if (this.#recognized.has(contract)) return
    const found = Buffer.from(hash(await server.getContractWasmByContractId(contract))).toString("hex")
    if (found !== (this.#options.wasmHash ?? batchWasmHash)) throw new Error(`${contract} has other code`)
    this.#recognized.add(contract)
  }
}
