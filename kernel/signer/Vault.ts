// The signing keys of sponsor and channels, and the only place that uses their seeds. A seed never leaves this file: it
// is never returned, logged or stored elsewhere. A remote key stays on its machine, and the vault calls it there.
// Channel keys derive from the sponsor's seed by HMAC unless the operator gives them, so every replica with the same
// sponsor has the same channels without sharing anything. Retired channels derive from a former sponsor's seed, or from
// this one before the operator gave others. The vault still signs for them, so that we can take back their balance. The
// sources may be read again while the process runs; then either all accounts change, or no account does.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Context, Effect, FileSystem, Layer, Option, Path, Redacted, Semaphore } from "effect"
import { Network } from "../config/Network.ts"
import type { AccountSignature } from "../stellar/Envelope.ts"
import type { LedgerUnavailable } from "../ledger/LedgerRpc.ts"
import { Crypto } from "../platform/Crypto.ts"
import { Host } from "../platform/Host.ts"
import { readSeeds, type Seed, VaultRefused } from "./readSeeds.ts"
import { openRemoteAccount, type RemoteAccount } from "./remote/RemoteAccount.ts"

/** The accounts, without the means to sign. */
export interface AccountNames {
  /** The sponsor's address, G… */
  readonly sponsor: string
  /**
   * Former sponsors with secrets behind the sponsor's: they still authorize calls that were signed for them, and pay
   * for nothing.
   */
  readonly formerSponsors: ReadonlyArray<string>
  /** The addresses of all possible channels, by number, from 0; the first of them are in use. */
  readonly channels: ReadonlyArray<string>
  /** Whether the operator names each channel: all of them are then required. */
  readonly areChannelsGiven: boolean
  /** Retired channels: not leased, merged into the sponsor. */
  readonly formerChannels: ReadonlyArray<string>
}

/** The accounts of one reading of the sources. */
export interface Accounts extends AccountNames {
  /** Signs 32 bytes as an account of ours; undefined for any other address. */
  readonly sign: (address: string, hash: Uint8Array) => Effect.Effect<AccountSignature | undefined, LedgerUnavailable>
  /** The reason why an account with a key on another machine cannot sign now. */
  readonly problem: Effect.Effect<string | undefined>
  /** Probes each remote signer that has not answered recently; `problem` has the result. */
  readonly assure: Effect.Effect<void>
}

type Sources = Network | Crypto | Host | FileSystem.FileSystem | Path.Path
type Sign = (hash: Uint8Array) => Effect.Effect<Uint8Array, LedgerUnavailable>

const deriveChannels = (crypto: Crypto["Service"], sponsor: Seed, count: number): ReadonlyArray<Seed> =>
  Array.from({ length: count }, (_, number) =>
    Redacted.make(crypto.hmacSha256(Redacted.value(sponsor), new TextEncoder().encode(`tollkeeper/channel/${number}`)))
  )

/** Signing accounts by address. */
class Holders {
  readonly #signs = new Map<string, Sign>()
  readonly #remote: Array<RemoteAccount> = []
  readonly #crypto: Crypto["Service"]

  constructor(crypto: Crypto["Service"]) {
    this.#crypto = crypto
  }

  local = (seed: Seed): string => {
    const address = StrKey.encodeEd25519PublicKey(this.#crypto.ed25519PublicKey(Redacted.value(seed)))
    if (!this.#signs.has(address)) {
      let signer: ((message: Uint8Array) => Uint8Array) | undefined
      this.#signs.set(address, (hash) =>
        Effect.sync(() => (signer ??= this.#crypto.ed25519Signer(Redacted.value(seed)))(hash))
      )
    }
    return address
  }

  remote = (account: RemoteAccount): string => {
    this.#remote.push(account)
    this.#signs.set(account.address, account.sign)
    return account.address
  }

  sign: Accounts["sign"] = (address, hash) => {
    const sign = this.#signs.get(address)
    if (sign === undefined) return Effect.succeed(undefined)
    const publicKey = StrKey.decodeEd25519PublicKey(address)
    return Effect.map(sign(hash), (signature) => ({ publicKey, signature }))
  }

  problem: Accounts["problem"] = Effect.suspend(() =>
    this.#remote.length === 0
      ? Effect.succeed(undefined)
      : Effect.map(
          Effect.forEach(this.#remote, ({ problem }) => problem, { concurrency: 4 }),
          (errors) => errors.find((failure) => failure !== undefined)
        )
  )

  /** One account represents its machine: the account that signed last. */
  assure: Accounts["assure"] = Effect.suspend(() => {
    const newest = new Map<string, RemoteAccount>()
    for (const account of this.#remote) {
      const newestKey = newest.get(account.machine)
      if (newestKey === undefined || account.signedAt() > newestKey.signedAt()) newest.set(account.machine, account)
    }
    return Effect.forEach(newest.values(), ({ assure }) => assure, { concurrency: 4, discard: true })
  })
}

const openRemote = (values: NonNullable<Network["Service"]["sponsorSigner"]>, crypto: Crypto["Service"]) =>
  Effect.mapError(
    openRemoteAccount(values, crypto),
    ({ message }) =>
      new VaultRefused({
        message: `${message}; check the signer that networks.<id>.sponsor_signer or .channel_signers names`
      })
  )

/** Reads every source and returns the accounts. */
const readAccounts = Effect.fn("Vault.readAccounts")(function* (
  network: Network["Service"]
): Effect.fn.Return<Accounts, VaultRefused, Exclude<Sources, Network>> {
  const crypto = yield* Crypto
  const holders = new Holders(crypto)
  const seeds = yield* readSeeds(network)
  const { channelSigners = [], sponsorSigner } = network
  const held = seeds.sponsors.map(holders.local)
  // Derived once per reread: there may be a thousand, and a key takes a tenth of a millisecond.
  const derived = seeds.sponsors.map((seed) => deriveChannels(crypto, seed, network.channelCountMax).map(holders.local))
  const remoteSponsor = sponsorSigner && holders.remote(yield* openRemote(sponsorSigner, crypto))
  const remoteChannels = yield* Effect.forEach(channelSigners, (signer) => openRemote(signer, crypto))
  const [sponsor, ...formerSponsors] = remoteSponsor === undefined ? held : [remoteSponsor, ...held]
  const given = Option.map(seeds.channels, (list) => list.map(holders.local))
  const channels =
    remoteChannels.length > 0 ? remoteChannels.map(holders.remote) : Option.getOrElse(given, () => derived[0] ?? [])
  if (new Set([sponsor, ...channels]).size !== channels.length + 1)
    return yield* new VaultRefused({ message: "sponsor and channels must all be different accounts" })
  const former = [...derived.flat(), ...seeds.formerChannels.map(holders.local)]
  const formerChannels = former.filter((address) => !channels.includes(address))
  return {
    sponsor: sponsor!,
    formerSponsors,
    channels,
    areChannelsGiven: remoteChannels.length > 0 || Option.isSome(given),
    formerChannels: [...new Set(formerChannels)],
    sign: holders.sign,
    problem: holders.problem,
    assure: holders.assure
  }
})

export class Vault extends Context.Service<
  Vault,
  {
    /** The accounts as of the last reading. */
    readonly accounts: () => Accounts
    /** Reads the sources again, and takes their keys if the check accepts them; otherwise nothing changes. */
    readonly reread: <E, R>(
      verify: (next: AccountNames) => Effect.Effect<void, E, R>
    ) => Effect.Effect<void, VaultRefused | E, R>
  }
>()("tollkeeper/signer/Vault") {
  static readonly layer: Layer.Layer<Vault, VaultRefused, Sources> = Layer.effect(
    Vault,
    Effect.gen(function* () {
      const network = yield* Network
      const services = yield* Effect.context<Exclude<Sources, Network>>()
      const read = Effect.provideContext(readAccounts(network), services)
      let accounts = yield* read
      // One reread at a time: an earlier read must not replace a later one.
      const one = yield* Semaphore.make(1)
      return Vault.of({
        accounts: () => accounts,
        reread: (check) =>
          one.withPermits(1)(Effect.flatMap(read, (next) => Effect.map(check(next), () => void (accounts = next))))
      })
    })
  )
}
