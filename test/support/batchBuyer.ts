// Payloads of `batch-settlement` for tests, as a buyer and a seller make them: a deposit, vouchers, claims, a settle, a
// refund, a withdrawal. Keys are parameters, so that any of them may be the wrong one, and a payload can be changed
// before it is sent. It asks the ledger only for its newest number.
import { Keypair, Networks, xdr } from "@stellar/stellar-sdk"
import {
  batchFunctions,
  channelKey,
  channelStateOf,
  depositArgs,
  depositTransferArgs,
  withdrawArgs
} from "../../plugins/x402-batch/batchCalls.ts"
import {
  type BatchContract,
  type ChannelConfig,
  channelIdOf,
  claimDigest,
  hexOfBytes,
  networkIdOf,
  refundDigest,
  voucherDigest
} from "../../plugins/x402-batch/batchCodec.ts"
import { encodeValue, type Value } from "../../kernel/stellar/Value.ts"
import {
  type AuthorizationOptions,
  callOf,
  invocationOf,
  signAuthorization
} from "../../runtime/redteam/authorization.ts"
import { nullAccount, testnetUsdc } from "../../runtime/redteam/buyer.ts"
import type { RpcCall } from "../../runtime/redteam/rpcCall.ts"

export const withdrawDelay = 900

/** One channel and the keys of its parties. */
export interface BatchChannel {
  readonly config: ChannelConfig
  readonly channelId: string
  readonly payer: Keypair
  readonly payerAuthorizer: Keypair
  readonly receiverAuthorizer: Keypair
}

const scVal = (value: Value): xdr.ScVal => xdr.ScVal.fromXdr(encodeValue(value))
const randomNonce = (): bigint => new DataView(Keypair.random().rawPublicKey().slice().buffer).getBigInt64(0)

const envelopeOf = (
  call: xdr.InvokeContractArgs,
  auth: ReadonlyArray<xdr.SorobanAuthorizationEntry>,
  source = nullAccount
): string =>
  xdr.TransactionEnvelope.envelopeTypeTx(
    new xdr.TransactionV1Envelope({
      tx: new xdr.Transaction({
        sourceAccount: xdr.MuxedAccount.keyTypeEd25519(Keypair.fromPublicKey(source).rawPublicKey()),
        fee: 100,
        seqNum: 1n,
        cond: xdr.Preconditions.precondNone(),
        memo: xdr.Memo.memoNone(),
        operations: [
          new xdr.Operation({
            sourceAccount: null,
            body: xdr.OperationBody.invokeHostFunction(
              new xdr.InvokeHostFunctionOp({
                hostFunction: xdr.HostFunction.hostFunctionTypeInvokeContract(call),
                auth: [...auth]
              })
            )
          })
        ],
        ext: xdr.TransactionExt.v0()
      }),
      signatures: []
    })
  ).toXdr("base64")

/**
 * Expiry of an authorizer's signature, Unix seconds: constant within a minute, so that repeated calls are identical.
 */
const soon = () => Math.floor(Date.now() / 60_000) * 60 + 1_800

const sign = (key: Keypair, digest: Uint8Array): string => hexOfBytes(key.sign(digest))

/** A token's transfer below a call. */
export interface Below {
  readonly contract: string
  readonly args: ReadonlyArray<Value>
  readonly below?: ReadonlyArray<Below>
}

/** Changes to an authorized call. */
export interface Otherwise {
  /** The transaction's call, if it differs from the authorized one. */
  readonly called?: xdr.InvokeContractArgs
  readonly entries?: (entry: xdr.SorobanAuthorizationEntry) => ReadonlyArray<xdr.SorobanAuthorizationEntry>
  readonly source?: string
  readonly authorization?: Partial<AuthorizationOptions>
  /** Default the batch contract. */
  readonly contract?: string
}

/** One claim of a channel: the voucher's maximum, and the claimed part. */
export interface ClaimOf {
  readonly channel: BatchChannel
  readonly max: bigint
  readonly total: bigint
}

/** A contract on a ledger, as buyers and sellers see it. */
export const makeBatch = (rpc: RpcCall, contract: string) => {
  const at: BatchContract = { networkId: networkIdOf(Networks.TESTNET), address: contract }
  const channel = (
    payer: Keypair,
    receiver: string,
    receiverAuthorizer: Keypair,
    changes: Partial<ChannelConfig> & { readonly payerAuthorizerKey?: Keypair } = {}
  ): BatchChannel => {
    const { payerAuthorizerKey = payer, ...others } = changes
    const config: ChannelConfig = {
      payer: payer.publicKey(),
      payerAuthorizer: payerAuthorizerKey.publicKey(),
      receiver,
      receiverAuthorizer: receiverAuthorizer.publicKey(),
      token: testnetUsdc,
      withdrawDelay,
      salt: hexOfBytes(Keypair.random().rawPublicKey()),
      ...others
    }
    const keys = { payer, payerAuthorizer: payerAuthorizerKey, receiverAuthorizer }
    return { config, channelId: channelIdOf(at, config), ...keys }
  }
  const voucher = ({ channelId, payerAuthorizer }: BatchChannel, max: bigint) => ({
    channelId,
    maxClaimableAmount: String(max),
    signature: sign(payerAuthorizer, voucherDigest(at, channelId, max))
  })
  const subOf = ({ args, below = [], contract: token }: Below): xdr.SorobanAuthorizedInvocation =>
    invocationOf(callOf(token, "transfer", args.map(scVal)), below.map(subOf))
  /** A call of the contract in an unsigned envelope that `signer` authorizes. */
  const signed = async (
    signer: Keypair,
    functionName: string,
    args: ReadonlyArray<Value>,
    below: ReadonlyArray<Below>,
    lifeLedgers: number,
    otherwise: Otherwise = {}
  ) => {
    const { sequence } = await rpc("getLatestLedger")
    const call = callOf(otherwise.contract ?? contract, functionName, args.map(scVal))
    const entry = signAuthorization({
      payer: signer,
      invocation: invocationOf(call, below.map(subOf)),
      nonce: randomNonce(),
      expirationLedger: sequence + lifeLedgers,
      networkPassphrase: Networks.TESTNET,
      ...otherwise.authorization
    })
    const entries = otherwise.entries?.(entry) ?? [entry]
    return { transaction: envelopeOf(otherwise.called ?? call, entries, otherwise.source) }
  }
  const claimsOf = (claims: ReadonlyArray<ClaimOf>) =>
    claims.map(({ channel, max, total }) => ({
      voucher: { channel: channel.config, maxClaimableAmount: String(max) },
      signature: voucher(channel, max).signature,
      totalClaimed: String(total)
    }))
  const claimSignature = (authorizer: Keypair, claims: ReadonlyArray<ClaimOf>, expiresAt: number) =>
    sign(
      authorizer,
      claimDigest(
        at,
        claims.map(({ channel: { channelId }, max, total }) => ({
          channelId,
          maxClaimableAmount: max,
          totalClaimed: total
        })),
        expiresAt
      )
    )
  return {
    at,
    channel,
    voucher,
    signed,
    deposit: async (of: BatchChannel, amount: bigint, max: bigint, from: Keypair = of.payer, lifeLedgers = 100) => ({
      type: "deposit",
      channelConfig: of.config,
      voucher: voucher(of, max),
      deposit: {
        amount: String(amount),
        authorization: await signed(
          from,
          batchFunctions.deposit,
          depositArgs(from.publicKey(), of.config, amount),
          [{ contract: of.config.token, args: depositTransferArgs(from.publicKey(), contract, amount) }],
          lifeLedgers
        )
      }
    }),
    pay: (of: BatchChannel, max: bigint) => ({ type: "voucher", channelConfig: of.config, voucher: voucher(of, max) }),
    claim: (
      claims: ReadonlyArray<ClaimOf>,
      authorizer: Keypair = claims[0]!.channel.receiverAuthorizer,
      expiresAt = soon()
    ) => ({
      type: "claim",
      claims: claimsOf(claims),
      expiresAt,
      claimAuthorizerSignature: claimSignature(authorizer, claims, expiresAt)
    }),
    /** The channel's entry on the ledger. */
    state: async ({ channelId }: BatchChannel) => {
      const { entries } = await rpc("getLedgerEntries", { keys: [channelKey(contract, channelId)] })
      const entry: any = xdr.LedgerEntryData.schema.decode(Buffer.from(entries[0].xdr, "base64") as never)
      return channelStateOf(entry.contractData.val)!
    },
    settle: (receiver: string, token = testnetUsdc) => ({ type: "settle", receiver, token }),
    refund: (of: BatchChannel, charged: bigint, amount: bigint, nonce: bigint, expiresAt = soon()) => {
      const claims = [{ channel: of, max: charged, total: charged }]
      return {
        type: "refund",
        channelConfig: of.config,
        voucher: voucher(of, charged),
        amount: String(amount),
        refundNonce: String(nonce),
        claims: claimsOf(claims),
        expiresAt,
        refundAuthorizerSignature: sign(
          of.receiverAuthorizer,
          refundDigest(at, of.channelId, amount, nonce, expiresAt)
        ),
        claimAuthorizerSignature: claimSignature(of.receiverAuthorizer, claims, expiresAt)
      }
    },
    withdraw: async (of: BatchChannel, stage: "Start" | "End", signer: Keypair = of.payer) => ({
      type: `withdraw${stage}`,
      channelConfig: of.config,
      authorization: await signed(
        signer,
        stage === "Start" ? batchFunctions.withdrawStart : batchFunctions.withdrawEnd,
        withdrawArgs(of.config),
        [],
        100
      )
    }),
    /** The body of verify and settle: the terms of a channel, with a price. */
    body: (of: Pick<BatchChannel, "config">, payload: unknown, price: bigint | string, changes: object = {}) => {
      const requirements = {
        scheme: "batch-settlement",
        network: "ledger:testnet",
        amount: String(price),
        asset: testnetUsdc,
        payTo: of.config.receiver,
        maxTimeoutSeconds: 300,
        extra: {
          areFeesSponsored: true,
          receiverAuthorizer: of.config.receiverAuthorizer,
          withdrawDelay: of.config.withdrawDelay,
          batchContract: contract
        },
        ...changes
      }
      return {
        x402Version: 2,
        paymentPayload: {
          x402Version: 2,
          payload,
          resource: { url: "http://127.0.0.1/batch", description: "", mimeType: "" },
          accepted: structuredClone(requirements)
        },
        paymentRequirements: requirements
      }
    }
  }
}

export type Batch = ReturnType<typeof makeBatch>
