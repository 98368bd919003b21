// A vault with settings from a test and separate secrets.
import { NodeServices } from "@effect/platform-node"
import { Keypair, Networks } from "@stellar/stellar-sdk"
import { Layer, Option, Redacted } from "effect"
import { Network } from "../../../kernel/config/Network.ts"
import { Host } from "../../../kernel/platform/Host.ts"
import { Vault } from "../../../kernel/signer/Vault.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"

export const sponsor = Keypair.random()
export const channels = [Keypair.random(), Keypair.random()]
export const [channel, otherChannel] = channels.map((pair) => pair.publicKey()) as [string, string]

export const networkWith = (values: Partial<Network["Service"]> = {}) =>
  Network.layerTest({
    id: "ledger:testnet",
    passphrase: Networks.TESTNET,
    rpcUrls: ["http://127.0.0.1:1"],
    friendbotUrl: Option.none(),
    sponsorSecret: Option.some(Redacted.make(sponsor.secret())),
    channelSecrets: Option.some(Redacted.make(channels.map((pair) => pair.secret()).join(","))),
    channelCount: 3,
    channelCountMax: 3,
    channelBalanceStroopsMin: 0n,
    developmentAutoFund: false,
    timeoutSecondsMax: 300,
    keys: () => ({}) as never,
    assets: new Map(),
    feeCeilings: (scheme) => ({
      resourceStroopsMax: 200_000n,
      inclusionStroopsMax: 10_000n,
      totalStroopsMax: scheme === "tight" ? 55_000n : 210_000n
    }),
    ...values
  })

export const hostAt = (stateFolder: string) => Layer.succeed(Host, { name: "test", stateFolder })
export const vaultWith = (values?: Partial<Network["Service"]>, stateFolder = "/nowhere") =>
  Vault.layer.pipe(Layer.provide([networkWith(values), cryptoLayer, hostAt(stateFolder), NodeServices.layer]))
