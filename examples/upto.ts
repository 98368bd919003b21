// The `upto` scheme for both sides of a sale, in the interface of the official packages, and usable without them. The
// buyer's side signs a maximum: one call of the settlement contract with all arguments except the amount, and below it
// the allowance and its end. It builds the signed bytes itself and reads from the ledger only its newest number and the
// contract's code, which it compares with the expected code. The seller's side copies the facilitator's announcement
// into its terms. The scheme is proposed, and its contract has not been audited.
import {
  Account,
  Address,
  authorizeEntry,
  hash,
  Keypair,
  nativeToScVal,
  Networks,
  Operation,
  rpc,
  TransactionBuilder,
  xdr
} from "@stellar/stellar-sdk"
import { settlementWasmHash } from "../plugins/x402-upto/contract.ts"
import { ledgersOf, usualAssets } from "./client/preparedBytes.mjs"

export interface UptoClientOptions {
  readonly secret: string
  /** A ledger RPC; asked for its newest ledger and for the contract's code. */
  readonly rpcUrl: string
  /** Contracts of the assets to pay in. Default USDC and XLM of the terms' network. */
  readonly assets?: ReadonlyArray<string>
  /** Default the test network's. */
  readonly networkPassphrase?: string
  /** sha256, hex, of the only contract code that this buyer signs for. Default: this project's contract. */
  readonly wasmHash?: string
}

/** Placeholder source account until the facilitator replaces it with a leased channel. */
const nullAccount = "GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF"

const address = (value: string) => new Address(value).toScVal()
const i128 = (value: bigint) => nativeToScVal(value, { type: "i128" })

const invocation = (
  contract: string,
  functionName: string,
  args: Array<xdr.ScVal>,
  subInvocations: Array<xdr.SorobanAuthorizedInvocation> = []
) =>
  new xdr.SorobanAuthorizedInvocation({
    function: xdr.SorobanAuthorizedFunction.sorobanAuthorizedFunctionTypeContractFn(
      new xdr.InvokeContractArgs({ contractAddress: new Address(contract).toScAddress(), functionName, args })
    ),
    subInvocations
  })

/** Signs payments of a maximum. The official client calls `createPaymentPayload`. */
export class UptoStellarClient {
  readonly scheme = "upto"
  readonly #options: UptoClientOptions
  readonly #buyer: Keypair
  readonly #server: rpc.Server
  readonly #known = new Set<string>()

  constructor(options: UptoClientOptions) {
    this.#options = options
    this.#buyer = Keypair.fromSecret(options.secret)
    this.#server = new rpc.Server(options.rpcUrl, { allowHttp: new URL(options.rpcUrl).protocol === "http:" })
  }

  async createPaymentPayload(x402Version: number, requirements: any): Promise<any> {
    const { facilitatorAddress, uptoContract } = requirements.extra ?? {}
    if (typeof uptoContract !== "string" || typeof facilitatorAddress !== "string")
      throw new Error("the terms name no settlement contract and facilitator")
    const { asset, network } = requirements
    if (!(this.#options.assets ?? usualAssets(network)).includes(asset))
      throw new Error(`${asset} is not an asset that this buyer pays in`)
    await this.#recognize(uptoContract)
    const lifetime = ledgersOf(requirements.maxTimeoutSeconds)
    const { protocolVersion, sequence } = await this.#server.getLatestLedger()
    const max = BigInt(requirements.amount)
    const deadline = sequence + lifetime
    const signedArguments = [
      address(this.#buyer.publicKey()),
      address(requirements.payTo),
      address(requirements.asset),
      i128(max),
      xdr.ScVal.scvU32(sequence),
      xdr.ScVal.scvU32(deadline),
      address(facilitatorAddress),
      xdr.ScVal.scvBytes(Keypair.random().rawPublicKey())
    ]
    const approve = (amount: bigint) =>
      invocation(requirements.asset, "approve", [
        address(this.#buyer.publicKey()),
        address(uptoContract),
        i128(amount),
        xdr.ScVal.scvU32(deadline)
      ])
    const entry = await this.#authorize(
      invocation(uptoContract, "settle", signedArguments, [approve(max), approve(0n)]),
      deadline,
      Number(protocolVersion)
    )
    const call = new xdr.InvokeContractArgs({
      contractAddress: new Address(uptoContract).toScAddress(),
      functionName: "settle",
      args: [...signedArguments, i128(max)]
    })
    const func = xdr.HostFunction.hostFunctionTypeInvokeContract(call)
    const transaction = new TransactionBuilder(new Account(nullAccount, "0"), {
      fee: "100",
      networkPassphrase: this.#passphrase
    })
      .addOperation(Operation.invokeHostFunction({ func, auth: [entry] }))
      .setTimeout(300)
      .build()
      .toXDR()
    return { x402Version, payload: { transaction } }
  }

  get #passphrase(): string {
    return this.#options.networkPassphrase ?? Networks.TESTNET
  }

  /** Refuses a contract with unexpected code: it gets an allowance. */
  async #recognize(contract: string): Promise<void> {
    if (this.#known.has(contract)) return
    const wasm = await this.#server.getContractWasmByContractId(contract)
    const found = Buffer.from(hash(wasm)).toString("hex")
    if (found !== (this.#options.wasmHash ?? settlementWasmHash))
      throw new Error(`${contract} has other code than the settlement contract that this buyer knows`)
    this.#known.add(contract)
  }

  #authorize(
    rootInvocation: xdr.SorobanAuthorizedInvocation,
    expirationLedger: number,
    protocolVersion: number
  ): Promise<xdr.SorobanAuthorizationEntry> {
    const credentials = new xdr.SorobanAddressCredentials({
      address: new Address(this.#buyer.publicKey()).toScAddress(),
      nonce: new DataView(Keypair.random().rawPublicKey().slice().buffer).getBigInt64(0),
      signatureExpirationLedger: expirationLedger,
      signature: xdr.ScVal.scvVoid()
    })
    const unsigned = new xdr.SorobanAuthorizationEntry({
      rootInvocation,
      // Since protocol 27 the signed payload includes the address.
      credentials:
        protocolVersion >= 27
          ? xdr.SorobanCredentials.sorobanCredentialsAddressV2(credentials)
          : xdr.SorobanCredentials.sorobanCredentialsAddress(credentials)
    })
    return authorizeEntry(unsigned, this.#buyer, expirationLedger, this.#passphrase)
  }
}

/** The seller's side, in the official resource server's interface: prices are amounts in atomic units of an asset. */
export class UptoStellarServer {
  readonly scheme = "upto"
  readonly defaultAssetTransferMethod = "default"
  readonly paymentFlows = { default: { supported: ["authorization"], default: "authorization" } }

  async parsePrice(price: any): Promise<any> {
    if (typeof price?.amount !== "string" || typeof price.asset !== "string")
      throw new Error("a price is { amount, asset } with the amount in atomic units")
    return { amount: price.amount, asset: price.asset, extra: price.extra ?? {} }
  }

  /** The facilitator's announcement becomes part of the terms: the parties that the buyer signs for. */
  async enhancePaymentRequirements(requirements: any, kind: any): Promise<any> {
    const { areFeesSponsored, facilitatorAddress, uptoContract } = kind.extra ?? {}
    return { ...requirements, extra: { ...requirements.extra, areFeesSponsored, facilitatorAddress, uptoContract } }
  }
}
