// Seeds in a sealed file: the passphrases that open it, and the rule that no seed comes from two places. Deriving its
// key deliberately takes a second.
import { expect, it } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { Keypair } from "@stellar/stellar-sdk"
import { Effect, FileSystem, Layer, Option, Redacted } from "effect"
import type { Network } from "../../../kernel/config/Network.ts"
import { Crypto } from "../../../kernel/platform/Crypto.ts"
import { sealSeeds } from "../../../kernel/signer/sealedSeeds.ts"
import { Vault } from "../../../kernel/signer/Vault.ts"
import { layer as cryptoLayer } from "../../../runtime/platform/nodeCrypto.ts"
import { channel, channels, otherChannel, sponsor, vaultWith } from "./vaults.ts"

it.effect("opens sealed seeds with their passphrase, and refuses two seed sources", () =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const file = yield* files.makeTempFileScoped()
    const crypto = yield* Crypto
    const former = Keypair.random()
    const seeds = {
      sponsor: [sponsor, former].map((pair) => Redacted.make(pair.secret())),
      channels: channels.map((pair) => Redacted.make(pair.secret())),
      formerChannels: []
    }
    const text = sealSeeds(crypto, seeds, Redacted.make("correct horse battery"))
    for (const pair of [sponsor, former, ...channels]) expect(text).not.toContain(pair.secret())
    yield* files.writeFileString(file, text)
    const sealedBy = (passphrase: string | undefined, more: Partial<Network["Service"]> = {}) =>
      vaultWith({
        sponsorSecret: Option.none(),
        channelSecrets: Option.none(),
        sealedSeeds: { file, passphrase: Option.map(Option.fromUndefinedOr(passphrase), (p) => Redacted.make(p)) },
        ...more
      })
    const opened = (yield* Effect.provide(Vault, sealedBy("correct horse battery"))).accounts()
    expect([opened.sponsor, opened.formerSponsors, opened.channels]).toEqual([
      sponsor.publicKey(),
      [former.publicKey()],
      [channel, otherChannel]
    ])
    const refusedBy = (layer: ReturnType<typeof vaultWith>) =>
      Effect.map(Effect.flip(Effect.scoped(Layer.build(layer))), ({ message }) => message)
    expect(yield* refusedBy(sealedBy("correct horse"))).toMatch(/this passphrase does not decrypt it/)
    expect(yield* refusedBy(sealedBy(undefined))).toMatch(/passphrase is not set/)
    const twice = sealedBy("correct horse battery", { sponsorSecret: Option.some(Redacted.make(sponsor.secret())) })
    expect(yield* refusedBy(twice)).toMatch(/given twice/)
    const other = text.replace(/"tag": "(.)/, (_, first) => `"tag": "${first === "A" ? "B" : "A"}`)
    yield* files.writeFileString(file, other)
    expect(yield* refusedBy(sealedBy("correct horse battery"))).toMatch(/does not decrypt/)
  }).pipe(Effect.scoped, Effect.provide([NodeServices.layer, cryptoLayer]))
)
