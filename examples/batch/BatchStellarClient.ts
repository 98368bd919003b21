// The buyer's side of `batch-settlement`, in the interface of the official client. It deposits a multiple of the price
// once, then signs one cumulative voucher per request. Its storage may be lost: the buyer then reads the channel from
// the ledger, and accepts the seller's total only with a voucher that has the buyer's own signature and was not just
// sent. It signs only for a contract with the expected code. A channel has one request at a time; parallel requests use
// separate channels, with different salts.
import { Account, Address, authorizeEntry, hash, Keypair, Networks, Operation, rpc } from "@stellar/stellar-sdk"
import { TransactionBuilder, xdr } from "@stellar/stellar-sdk"
import {
  batchWasmHash,
  channelKey,
  depositArgs,
  depositTransferArgs,
  withdrawArgs
} from "../../plugins/x402-batch/contract.ts"
import { ask, decode, encode, requestOf } from "../client/keptPayments.mjs"
import { encodeValue, type Value } from "../../kernel/stellar/Value.ts"
import { answeredTotal } from "../client/preparedBatch.mjs"
import { ledgersOf } from "../client/preparedBytes.mjs"
import {
  checkAnswers,
  type ClientChannel,
  type ClientStorage,
  larger,
  memoryClientStorage,
  signedIn
} from "./clientStorage.ts"
import { checkDepositTerms, type DepositBounds, depositFor, plain } from "./depositBounds.ts"
import type { ChannelConfig } from "./channels.ts"
import { nullAccount, provenState, stateOf } from "./provenState.ts"
import { channelIdIn, contractOf, isVoucherOf, placeOf, type Signer, signerOf, signVoucher } from "./vouchers.ts"

export { type ClientChannel, type ClientStorage, memoryClientStorage }

export interface BatchClientOptions extends DepositBounds {
  readonly secret: string
  /** A ledger RPC, called before a deposit and after a loss of the storage. */
  readonly rpcUrl: string
  readonly storage?: ClientStorage
  /** A session key that signs vouchers instead of the payer's key. Default: the payer's. */
  readonly voucherSecret?: string
  /**
   * 32 bytes, hex: separates channels with one seller. Default zeros. The official interface names no URL: a client for
   * each origin, with its `saltOf` (`preparedBatch.mjs`), keeps an origin with copied terms off a seller's channel.
   */
  readonly salt?: string
  /** sha256, hex, of the only contract code that this buyer deposits into. Default: this project's contract. */
  readonly wasmHash?: string
}

/** Refusals caused by the channel's state on the ledger, or by a seller without a record that proves its total. */
const ledgerSaysOtherwise = /_(channel_not_found|cumulative_(exceeds_balance|below_claimed|amount_mismatch))$/

const timeoutSeconds = 60
const scVal = (value: Value): xdr.ScVal => xdr.ScVal.fromXdr(encodeValue(value))

const invocation = (
  contract: string,
  functionName: string,
  args: ReadonlyArray<Value>,
  subInvocations: Array<xdr.SorobanAuthorizedInvocation> = []
) =>
  new xdr.SorobanAuthorizedInvocation({
    function: xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(
      new xdr.InvokeContractArgs({
        contractAddress: new Address(contract).toScAddress(),
        functionName,
        args: args.map(scVal)
      })
    ),
    subInvocations
  })

export class BatchStellarClient {
  readonly scheme = "batch-settlement"
  readonly schemeHooks
  readonly #options: BatchClientOptions
  readonly #payer: Keypair
  readonly #signer: Signer
  readonly #server: rpc.Server
  readonly #storage: ClientStorage
  readonly #known = new Set<string>()
  /** By recipient, the channel of its unanswered deposit: other terms would mean another channel. */
  readonly #opening = new Map<string, string>()
  /** By channel, its newest request: the voucher's amount, and the highest amount signed before it. */
  readonly #sent = new Map<string, { readonly max: bigint; readonly before: bigint }>()

  constructor(options: BatchClientOptions) {
    this.#options = options
    this.#payer = Keypair.fromSecret(options.secret)
    this.#signer = signerOf(options.voucherSecret ?? options.secret)
    this.#server = new rpc.Server(options.rpcUrl, { allowHttp: new URL(options.rpcUrl).protocol === "http:" })
    this.#storage = options.storage ?? memoryClientStorage()
    this.schemeHooks = { onPaymentResponse: (context: any) => this.#received(context) }
  }

  /** The channel with the seller of these terms. */
  configOf(requirements: any): ChannelConfig {
    return {
      payer: this.#payer.publicKey(),
      payerAuthorizer: this.#signer.address,
      receiver: requirements.payTo,
      receiverAuthorizer: requirements.extra.receiverAuthorizer,
      token: requirements.asset,
      withdrawDelay: requirements.extra.withdrawDelay,
      salt: this.#options.salt ?? "00".repeat(32)
    }
  }

  channelIdOf(requirements: any): string {
    return channelIdIn(requirements.network, contractOf(requirements), this.configOf(requirements))
  }

  async createPaymentPayload(x402Version: number, requirements: any): Promise<any> {
    const channelConfig = this.configOf(requirements)
    const channelId = this.channelIdOf(requirements)
    const place = placeOf(requirements.network, contractOf(requirements))
    const price = BigInt(requirements.amount)
    const known = await this.#storage.get(channelId)
    checkAnswers(known)
    const isEnough = known !== undefined && BigInt(known.charged) + price <= BigInt(known.balance)
    // The channel may already contain a deposit with a lost answer, or a deposit by another process.
    const channel = isEnough ? known : await this.#recover(requirements, channelId, known?.charged)
    const max = BigInt(channel.charged) + price
    const sign = async () => {
      const before = signedIn(channel)
      this.#sent.set(channelId, { max, before })
      const now = (await this.#storage.get(channelId)) ?? channel
      const unanswered = (now.unanswered ?? 0) + 1
      await this.#storage.set(channelId, { ...now, ...channel, signed: String(larger(max, before)), unanswered })
      return signVoucher(this.#signer, place, channelId, max)
    }
    const missing = max - BigInt(channel.balance)
    if (missing <= 0n) return { x402Version, payload: { type: "voucher", channelConfig, voucher: await sign() } }
    checkDepositTerms(requirements, this.#options)
    const { amount, transaction } = await this.#openDeposit(requirements, channelConfig, channelId, missing)
    const deposit = { amount, authorization: { transaction } }
    return { x402Version, payload: { type: "deposit", channelConfig, voucher: await sign(), deposit } }
  }

  /**
   * Resumes a channel after three lost answers in a row, which may have been charged, or after an answer that
   * contradicts its voucher. The next voucher has the same base; the seller's total needs a voucher that proves it.
   */
  async goOn(requirements: any): Promise<void> {
    const channelId = this.channelIdOf(requirements)
    const { disputed: _, unanswered: __, ...known } = (await this.#storage.get(channelId)) ?? {}
    if (_ !== undefined || __ !== undefined) await this.#storage.set(channelId, known as ClientChannel)
  }

  async #answered(channelId: string): Promise<void> {
    const { unanswered: _, ...known } = (await this.#storage.get(channelId)) ?? {}
    if (_ !== undefined) await this.#storage.set(channelId, known as ClientChannel)
  }

  /** Returns the unanswered deposit, or makes a new one: a seller has at most one at a time. */
  async #openDeposit(requirements: any, config: ChannelConfig, channelId: string, missing: bigint) {
    const seller = `${requirements.network} ${requirements.payTo}`
    const opening = this.#opening.get(seller) ?? channelId
    const open = (await this.#storage.get(opening))?.open
    if (open !== undefined && (await this.#server.getLatestLedger()).sequence <= open.expires) {
      this.#opening.set(seller, opening)
      if (opening === channelId && missing <= BigInt(open.amount)) return open
      throw new Error(`a deposit of ${open.amount} with this seller has no answer yet`)
    }
    const amount = depositFor(requirements, this.#options, missing)
    const transaction = await this.#authorizeDeposit(requirements, config, amount)
    const lifetime = ledgersOf(requirements.maxTimeoutSeconds ?? timeoutSeconds)
    const expires = (await this.#server.getLatestLedger()).sequence + lifetime
    const made = { amount: String(amount), transaction, expires }
    const known = (await this.#storage.get(channelId)) ?? { charged: "0", balance: "0" }
    this.#opening.set(seller, channelId)
    await this.#storage.set(channelId, { ...known, open: made })
    return made
  }

  /** Asks the seller at `url` to refund `amount`, default the whole rest. Returns the settlement's answer. */
  async refund(url: string, amount?: bigint): Promise<any> {
    for (let attempt = 0; attempt < 2; attempt++) {
      const asked = decode((await ask(requestOf(url, {}))).headers.get("payment-required"))
      const accepted = asked?.accepts.find((one: any) => one.scheme === this.scheme)
      if (accepted === undefined) throw new Error(`${url} does not offer ${this.scheme}`)
      const channelId = this.channelIdOf(accepted)
      const channel = (await this.#storage.get(channelId)) ?? (await this.#recover(accepted, channelId))
      const place = placeOf(accepted.network, contractOf(accepted))
      // A refund signs for at most the charged amount, so any of our vouchers may correct that amount.
      this.#sent.delete(channelId)
      const payload = {
        type: "refund",
        channelConfig: this.configOf(accepted),
        voucher: signVoucher(this.#signer, place, channelId, BigInt(channel.charged)),
        ...(amount === undefined ? {} : { amount: String(amount) })
      }
      const paymentPayload = { x402Version: 2, accepted, payload, resource: asked.resource }
      const response = await ask(requestOf(url, {}), encode(paymentPayload))
      const receipt = decode(response.headers.get("payment-response"))
      if (receipt?.success === true) {
        await this.#received({ settleResponse: receipt, paymentPayload, requirements: accepted })
        return receipt
      }
      const corrective = decode(response.headers.get("payment-required"))
      // The refund may have been signed, and be paid out until it expires: read the ledger before the next payment.
      const kept = (await this.#storage.get(channelId)) ?? channel
      await this.#storage.set(channelId, { ...kept, balance: kept.charged })
      const recovered = await this.#received({ paymentRequired: corrective })
      if (recovered === undefined)
        throw new Error(`the refund was refused: ${receipt?.errorReason ?? corrective?.error ?? response.status}`)
    }
    throw new Error("the refund was refused after a correction")
  }

  /** Starts or ends a withdrawal without the seller: the body of the facilitator's settle. */
  async withdrawal(step: "start" | "end", requirements: any): Promise<any> {
    const accepted = plain(requirements)
    const channelConfig = this.configOf(accepted)
    const name = step === "start" ? "withdraw_start" : "withdraw_end"
    const transaction = await this.#authorize(accepted, name, withdrawArgs(channelConfig))
    const type = step === "start" ? "withdrawStart" : "withdrawEnd"
    const payload = {
      type,
      channelConfig,
      voucher: { channelId: this.channelIdOf(accepted) },
      authorization: { transaction }
    }
    return {
      x402Version: 2,
      paymentPayload: { x402Version: 2, accepted, payload },
      paymentRequirements: accepted
    }
  }

  /** The channel as on the ledger. Its total is the larger of the claimed amount and the known charge. */
  async #recover(requirements: any, channelId: string, known = "0"): Promise<ClientChannel> {
    const key = xdr.LedgerKey.fromXdr(channelKey(contractOf(requirements), channelId), "base64")
    const { entries } = await this.#server.getLedgerEntries(key)
    const value = entries[0]?.val.value as any
    const state =
      value === undefined
        ? await provenState(this.#server, requirements.network, contractOf(requirements), channelId)
        : stateOf(value.val)
    const claimed = state?.totalClaimed ?? 0n
    const charged = claimed > BigInt(known) ? String(claimed) : known
    const before = await this.#storage.get(channelId)
    const balance = String(state?.balance ?? 0n)
    // A deposit on the ledger counts as answered.
    const { open, ...rest } = before ?? {}
    const isOpen = open !== undefined && BigInt(balance) <= BigInt(before?.balance ?? 0)
    const channel: ClientChannel = { ...rest, charged, balance, ...(isOpen ? { open } : {}) }
    await this.#storage.set(channelId, channel)
    return channel
  }

  async #received({ paymentPayload, paymentRequired, requirements, settleResponse }: any): Promise<any> {
    const channelId = paymentPayload?.payload?.voucher?.channelId
    const isAnswer = settleResponse !== undefined || paymentRequired !== undefined
    if (isAnswer && typeof channelId === "string") await this.#answered(channelId)
    if (settleResponse !== undefined) {
      if (settleResponse.success) await this.#settled(paymentPayload.payload, requirements, settleResponse)
      return undefined
    }
    for (const accept of paymentRequired?.accepts ?? []) {
      if (accept.scheme !== this.scheme) continue
      if ((await this.#corrected(accept)) || (await this.#reread(accept, paymentRequired.error)))
        return { recovered: true }
    }
    return undefined
  }

  /** Whether the ledger shows a lower balance than our record, or a claimed amount above our known charge. */
  async #reread(accept: any, reason: unknown): Promise<boolean> {
    if (!ledgerSaysOtherwise.test(String(reason))) return false
    const channelId = this.channelIdOf(accept)
    const known = await this.#storage.get(channelId)
    if (known === undefined) return false
    const { balance, charged } = await this.#recover(accept, channelId, known.charged)
    if (BigInt(balance) < BigInt(known.balance)) return true
    return BigInt(charged) > BigInt(known.charged) && !this.#mayBeSent(channelId, BigInt(charged))
  }

  /** Whether a total may come from the voucher just sent, which the seller may have accepted: never pay it twice. */
  #mayBeSent(channelId: string, total: bigint): boolean {
    const { before, max } = this.#sent.get(channelId) ?? { before: 0n, max: 0n }
    return total > before && total <= max
  }

  /** Stores the total after an answer. One that contradicts its voucher changes no amount, and stops the client. */
  async #settled(payload: any, requirements: any, { extra }: any): Promise<void> {
    const channelId = this.channelIdOf(requirements)
    const channel = (await this.#storage.get(channelId)) ?? { charged: "0", balance: "0" }
    const { balance } = extra?.channelState ?? {}
    const max = BigInt(payload.voucher.maxClaimableAmount)
    const price = payload.type === "refund" ? 0n : BigInt(requirements.amount)
    const signed = String(larger(signedIn(channel), max))
    const total = answeredTotal({ channelId, max, price }, extra)
    if (typeof total === "string")
      return void (await this.#storage.set(channelId, { ...channel, signed, disputed: total }))
    const charged = larger(total, BigInt(channel.charged))
    const deposited = payload.type === "deposit" ? BigInt(payload.deposit.amount) : 0n
    const refunded = payload.type === "refund" && /^\d{1,39}$/.test(balance ?? "")
    await this.#storage.set(channelId, {
      charged: String(charged),
      // The charged amount stays in the balance, even if the seller reports a larger refund.
      balance: refunded ? String(larger(BigInt(balance), charged)) : String(BigInt(channel.balance) + deposited),
      signed
    })
  }

  /** Accepts the seller's total with a voucher of our own key for at least as much, and the ledger's balance. */
  async #corrected(accept: any): Promise<boolean> {
    const { channelState, voucherState } = accept.extra ?? {}
    const channelId = this.channelIdOf(accept)
    const charged = String(channelState?.chargedCumulativeAmount ?? "")
    if (channelState?.channelId !== channelId || !/^(0|[1-9][0-9]{0,38})$/.test(charged)) return false
    const voucher = {
      channelId,
      maxClaimableAmount: String(voucherState?.signedMaxClaimable ?? ""),
      signature: String(voucherState?.signature ?? "")
    }
    const place = placeOf(accept.network, contractOf(accept))
    if (!isVoucherOf(this.#signer.address, place, voucher)) return false
    const proven = BigInt(voucher.maxClaimableAmount)
    if (this.#mayBeSent(channelId, proven)) return false
    const known = await this.#storage.get(channelId)
    if (BigInt(charged) > proven) return false
    const recovered = await this.#recover(accept, channelId)
    const signed = String(larger(proven, known === undefined ? 0n : signedIn(known)))
    // Claimed and answered amounts were charged. A seller with a restored record may report less.
    const base = String([BigInt(recovered.charged), BigInt(known?.charged ?? 0)].reduce(larger, BigInt(charged)))
    if (base === known?.charged && recovered.balance === known.balance) return false
    await this.#storage.set(channelId, { ...recovered, charged: base, signed })
    return true
  }

  #authorizeDeposit(requirements: any, config: ChannelConfig, amount: bigint): Promise<string> {
    const contract = contractOf(requirements)
    const below = invocation(config.token, "transfer", depositTransferArgs(config.payer, contract, amount))
    return this.#authorize(requirements, "deposit", depositArgs(config.payer, config, amount), [below])
  }

  /** An unsigned envelope around one call of the contract that the payer authorizes. */
  async #authorize(
    requirements: any,
    functionName: string,
    args: ReadonlyArray<Value>,
    below: Array<xdr.SorobanAuthorizedInvocation> = []
  ): Promise<string> {
    const contract = contractOf(requirements)
    await this.#recognize(contract)
    const passphrase = requirements.network.endsWith(":pubnet") ? Networks.PUBLIC : Networks.TESTNET
    const lifetime = ledgersOf(requirements.maxTimeoutSeconds ?? timeoutSeconds)
    const { protocolVersion, sequence } = await this.#server.getLatestLedger()
    const expiration = sequence + lifetime
    const root = invocation(contract, functionName, args, below)
    const credentials = new xdr.SorobanAddressCredentials({
      address: new Address(this.#payer.publicKey()).toScAddress(),
      nonce: new DataView(Keypair.random().rawPublicKey().slice().buffer).getBigInt64(0),
      signatureExpirationLedger: expiration,
      signature: xdr.ScVal.scvVoid()
    })
    const unsigned = new xdr.SorobanAuthorizationEntry({
      rootInvocation: root,
      // Since protocol 27 the signed payload includes the address.
      credentials:
        Number(protocolVersion) >= 27
          ? xdr.SorobanCredentials.sorobanCredentialsAddressV2(credentials)
          : xdr.SorobanCredentials.sorobanCredentialsAddress(credentials)
    })
    const entry = await authorizeEntry(unsigned, this.#payer, expiration, passphrase)
    const call = new xdr.InvokeContractArgs({
      contractAddress: new Address(contract).toScAddress(),
      functionName,
      args: args.map(scVal)
    })
    const func = xdr.HostFunction.hostFunctionTypeInvokeContract(call)
    return new TransactionBuilder(new Account(nullAccount, "0"), { fee: "100", networkPassphrase: passphrase })
      .addOperation(Operation.invokeHostFunction({ func, auth: [entry] }))
      .setTimeout(300)
      .build()
      .toXDR()
  }

  /** Refuses a contract with unexpected code: it holds the deposit. */
  async #recognize(contract: string): Promise<void> {
    if (this.#known.has(contract)) return
    const wasm = await this.#server.getContractWasmByContractId(contract)
    const found = Buffer.from(hash(wasm)).toString("hex")
    if (found !== (this.#options.wasmHash ?? batchWasmHash))
      throw new Error(`${contract} has other code than the batch contract that this buyer knows`)
    this.#known.add(contract)
  }
}
