// The real signer over real keys, one for each number of channels that a replica may be set to. Signers are stateless,
// so all runs of the process share them. Signatures are not under test here, and the simulated ledger does not read
// them.
import { NodeServices } from "@effect/platform-node"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, Layer, Option, Redacted } from "effect"
import { Network } from "../../kernel/config/Network.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { Host } from "../../kernel/platform/Host.ts"
import { Signer } from "../../kernel/signer/Signer.ts"
import { Vault } from "../../kernel/signer/Vault.ts"
import * as NodeCrypto from "../../runtime/platform/nodeCrypto.ts"

export const networkId = "ledger:testnet"
export const channelsMin = 2
export const channelsMax = 6
export const ceilings = { resourceStroopsMax: 200_000n, inclusionStroopsMax: 10_000n, totalStroopsMax: 210_000n }
/** Resource fee of the simulated schemes' transactions, in addition to the bid. */
export const resourceFeeStroops = 40_000n

const networkOf = (channelCount: number) =>
  Network.of({
    id: networkId,
    passphrase: "Test SDF Network ; September 2015",
    rpcUrls: [],
    friendbotUrl: Option.none(),
    sponsorSecret: Option.some(Redacted.make(Keypair.fromRawEd25519Seed(new Uint8Array(32).fill(7)).secret())),
    channelSecrets: Option.none(),
    channelCount,
    channelCountMax: channelCount,
    channelBalanceStroopsMin: 1n,
    developmentAutoFund: false,
    timeoutSecondsMax: 300,
    keys: () => ({}) as never,
    assets: new Map(),
    feeCeilings: () => ceilings
  })

const unsigned = Layer.effect(
  Crypto,
  Effect.map(Crypto, (crypto) => Crypto.of({ ...crypto, ed25519Signer: () => () => new Uint8Array(64) }))
).pipe(Layer.provide(NodeCrypto.layer))

export interface Keys {
  readonly network: Network["Service"]
  readonly signer: Signer["Service"]
  readonly crypto: Crypto["Service"]
}

const keysFor = (channelCount: number): Promise<Keys> => {
  const network = networkOf(channelCount)
  const layer = Signer.layer.pipe(
    Layer.provide(Vault.layer),
    Layer.provideMerge(
      Layer.mergeAll(
        unsigned,
        NodeServices.layer,
        Layer.succeed(Network, network),
        Layer.succeed(Host, { name: "simulation", stateFolder: "." })
      )
    )
  )
  return Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        return { network, signer: yield* Signer, crypto: yield* Crypto }
      }).pipe(Effect.provide(layer))
    )
  )
}

const byCount = new Map<number, Keys>()
for (let count = channelsMin; count <= channelsMax; count++) byCount.set(count, await keysFor(count))

/** The keys of a replica with this number of channels in its settings. All replicas share the first ones. */
export const keysOf = (channelCount: number): Keys => byCount.get(channelCount)!
