// Shared parts of the `upto` cases: terms as the facilitator announces them, payments signed by hand, and a token that
// can be set to lie and whose address is listed before it is deployed.
import {
  Address,
  hash,
  Keypair,
  nativeToScVal,
  Networks,
  Operation,
  rpc,
  scValToNative,
  TransactionBuilder,
  xdr
} from "@stellar/stellar-sdk"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { draftWasm } from "../../plugins/x402-upto/contract/drafts/draftWasm.ts"
import { buildContract } from "../contract/build.ts"
import { contractAddressOf, deployContract, execute } from "../support/deployContract.ts"
import { testnetUsdc } from "../../runtime/redteam/buyer.ts"
import { makeUptoPayment, type UptoOptions, type UptoPayment } from "../support/uptoBuyer.ts"
import { draftProfiles } from "../support/uptoProfiles.ts"
import { post, type Answer } from "../../runtime/redteam/ask.ts"
import { root, type World } from "./world.ts"

/** Maximum of an honest payment in these cases. */
export const max = 10_000n

const tokenDeployer = Keypair.fromRawEd25519Seed(hash(Buffer.from("tollkeeper conformance token")))
const salt = new Uint8Array(32)

/** Future address of the lying token; the facilitator's settings list it. */
export const lyingToken = contractAddressOf(tokenDeployer, salt)

/** The local profile's assets and the token, as a setting. */
export const assetsWithLyingToken = `networks.ledger:testnet.assets=[${[
  [testnetUsdc, "USDC"],
  ["CDLZFC3SYJYDZT7K67VZ75HPJVIEUVNIXF47ZG2FB2RMQQVU2HHGCYSC", "XLM"],
  [lyingToken, "LIE"]
]
  .map(([contract, symbol]) => `{contract: ${contract}, symbol: ${symbol}, decimals: 7}`)
  .join()}]`

/** The contracts of the drafts' profiles; their addresses are listed before they are deployed. */
const draftsDeployer = Keypair.fromRawEd25519Seed(hash(Buffer.from("tollkeeper conformance drafts")))
const modules = { "stateless-salt": "stateless", "stateful-nonce": "stateful", "seven-arguments": "seven" } as const
const saltOf = (profile: DraftProfile) => new Uint8Array(32).fill(draftProfiles.indexOf(profile))
export type DraftProfile = (typeof draftProfiles)[number]
export const draftContract = (profile: DraftProfile): string => contractAddressOf(draftsDeployer, saltOf(profile))
export const uptoProfiles = `networks.ledger:testnet.upto_profiles={${draftProfiles
  .map((profile) => `${profile}: ${draftContract(profile)}`)
  .join()}}`

export const deployDraft = (ledger: string, profile: DraftProfile): Promise<string> => {
  const wasm = Buffer.from(draftWasm[modules[profile]].base64, "base64")
  return deployContract(ledger, draftsDeployer, wasm, saltOf(profile))
}

/** The token's modes. In each it announces the whole amount, independent of the real movement. */
export const Mode = { honest: 0, half: 1, twice: 2, elsewhere: 3, nothing: 4, "an atom more": 5 } as const

export interface Token {
  readonly set: (mode: number) => Promise<void>
  readonly mint: (to: string, amount: bigint) => Promise<void>
  readonly balance: (owner: string) => Promise<bigint>
}

/** Deploys the token if necessary, and calls it without privileges. */
export const startToken = async (ledger: string): Promise<Token> => {
  const server = new rpc.Server(ledger, { allowHttp: true })
  const isThere = await server.getContractWasmByContractId(lyingToken).then(
    () => true,
    () => false
  )
  if (!isThere) {
    const source = await readFile(join(root, "test", "contract", "token.as"), "utf8")
    await deployContract(ledger, tokenDeployer, await buildContract(source), salt)
  }
  const call = (functionName: string, args: Array<xdr.ScVal>) =>
    Operation.invokeContractFunction({ contract: lyingToken, function: functionName, args })
  const address = (value: string) => new Address(value).toScVal()
  return {
    set: (mode) => execute(server, tokenDeployer, call("mode", [xdr.ScVal.scvU32(mode)])),
    mint: (to, amount) =>
      execute(server, tokenDeployer, call("mint", [address(to), nativeToScVal(amount, { type: "i128" })])),
    balance: async (owner) => {
      const source = await server.getAccount(tokenDeployer.publicKey())
      const asked = new TransactionBuilder(source, { fee: "100", networkPassphrase: Networks.TESTNET })
        .addOperation(call("balance", [address(owner)]))
        .setTimeout(60)
        .build()
      const simulated = await server.simulateTransaction(asked)
      if (!rpc.Api.isSimulationSuccess(simulated)) throw new Error("the token did not return a balance")
      return scValToNative(simulated.result!.retval) as bigint
    }
  }
}

export interface Upto {
  readonly contract: string
  /** Names of the announced profiles; empty if only ours is announced. */
  readonly profiles: ReadonlyArray<string>
  readonly sponsor: string
  readonly pay: (options: Partial<UptoOptions> & Pick<UptoOptions, "payer" | "payTo">) => Promise<UptoPayment>
  readonly verify: (payment: UptoPayment) => Promise<Answer>
  readonly settle: (payment: UptoPayment, actual: bigint | string) => Promise<Answer>
}

/** Reads the facilitator's announcement. */
export const uptoOf = async (world: World): Promise<Upto> => {
  const { kinds }: any = await (await fetch(`${world.facilitator}/supported`)).json()
  const kind = kinds.find(({ network, scheme }: any) => scheme === "upto" && network === "ledger:testnet")
  if (kind === undefined) throw new Error("the facilitator does not offer upto")
  const { facilitatorAddress: sponsor, uptoContract: contract } = kind.extra
  return {
    contract,
    profiles: (kind.extra.profiles ?? []).map(({ profile }: any) => profile),
    sponsor,
    pay: (options) => makeUptoPayment({ rpc: world.rpc, contract, facilitator: sponsor, max, ...options }),
    verify: (payment) => post(`${world.facilitator}/verify`, payment.verifyBody),
    settle: (payment, actual) => post(`${world.facilitator}/settle`, payment.settleBody(actual))
  }
}
