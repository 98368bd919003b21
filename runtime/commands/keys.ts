// `tollkeeper keys`: the principals with access, by label; rereading the variables without a restart; and the signing
// seeds, sealed in a file. No secret is shown.
import { StrKey } from "@stellar/stellar-sdk/base"
import { Context, Effect, FileSystem, Layer, Option, Redacted, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { SqlClient } from "effect/sql"
import { linesOf, requireAll } from "../../kernel/accounts/KeyRevisions.ts"
import { Server } from "../../kernel/config/Server.ts"
import { Keys } from "../../kernel/http/Keys.ts"
import { Crypto } from "../../kernel/platform/Crypto.ts"
import { ChannelCount } from "../../kernel/settlement/channels/ChannelCount.ts"
import { KeyRotation, type KeyAccounts } from "../../kernel/settlement/channels/KeyRotation.ts"
import { splitSecrets } from "../../kernel/signer/readSeeds.ts"
import { sealSeeds } from "../../kernel/signer/sealedSeeds.ts"
import * as NodeCrypto from "../platform/nodeCrypto.ts"
import type { Profile } from "../profile.ts"
import {
  announcedAt,
  answer,
  byPerson,
  type CommandTarget,
  databaseStatus,
  defaulting,
  jsonFlag,
  kept,
  noted,
  placeFlags,
  profileAt,
  reasonFlag,
  stateFlag,
  Within
} from "./CommandTarget.ts"
import { rereadSecrets } from "../rereadSecrets.ts"
import { StateRefused } from "../state.ts"

/** Shorter ones can be guessed. */
const passphraseLengthMin = 16

const keysAt = (place: CommandTarget) =>
  databaseStatus(Keys.layer.pipe(Layer.provideMerge(Server.layer), Layer.provideMerge(announcedAt(place))))

const list = Command.make("list", { ...placeFlags(), json: jsonFlag }, ({ json, ...place }) =>
  Effect.gen(function* () {
    const { listed } = yield* Keys
    const { callers, operators } = listed()
    const of = (names: ReadonlyArray<string>, what: string, none: string) =>
      names.length === 0 ? `no ${what}: ${none}` : `${what}: ${names.join(", ")}`
    yield* answer(json, { callers, operators }, [
      of(callers, "caller keys", "every client that can reach the listener is served"),
      of(operators, "operator keys", "actions over HTTP are refused, metrics are served only to this machine")
    ])
  }).pipe(Effect.provide(keysAt(place)))
).pipe(Command.withDescription("List the principals of callers' and operators' keys"))

const reinstateFlag = Flag.Boolean("reinstate").pipe(
  Flag.withDescription("Reinstate revoked keys that the files here list; default false"),
  Flag.withDefault(false)
)

const rereadFlags = { ...placeFlags(), json: jsonFlag, reason: reasonFlag, reinstates: reinstateFlag }

const reread = Command.make("reread", rereadFlags, ({ json, reason, reinstates, ...place }) =>
  Effect.gen(function* () {
    const within = yield* Within
    if (within === undefined)
      return yield* new StateRefused({
        message: `no process runs over ${place.state} that could reread its keys; name another folder with --state DIR`
      })
    const keys = yield* Keys
    const replicas = yield* rereadSecrets(within.services, { reinstates }, { ...(yield* byPerson), reason })
    yield* answer(json, { ...keys.listed(), replicas }, linesOf(replicas))
    yield* requireAll(replicas)
  }).pipe(Effect.provide(keysAt(place)))
).pipe(Command.withDescription("Reread keys and webhook secrets on all replicas, as SIGHUP does; reports each replica"))

const signersText = ({ channels, sponsor }: KeyAccounts): string =>
  `sponsor ${sponsor}, channels from ${channels[0] ?? "none"}`

const rotate = Command.make(
  "rotate",
  {
    ...placeFlags(),
    json: jsonFlag,
    reason: reasonFlag,
    what: Argument.Literals("what", ["sponsor", "channels"]).pipe(Argument.withDescription("sponsor, or channels"))
  },
  Effect.fn(function* ({ json, reason, what, ...place }) {
    const within = yield* Within
    const rotation = within && Context.getOption(within.services, KeyRotation)
    if (rotation === undefined || Option.isNone(rotation))
      return yield* new StateRefused({
        message: `no facilitator runs over ${place.state} that could rotate; name another folder with --state DIR`
      })
    const { channels, formerSponsors, sponsor } = yield* noted({ action: "rotate", subject: what, reason })(
      Effect.gen(function* () {
        const { before } = yield* rotation.value.plan(what)
        return { before, ...(yield* rotation.value.rotate(what)) }
      }),
      ({ before, ...after }) => ({ before: signersText(before), after: signersText(after) })
    ).pipe(Effect.provide(within!.services as Context.Context<SqlClient.SqlClient>))
    // Derives keys for as many channels as a resize may ask for; the required ones are in use.
    const required = Option.match(Context.getOption(within!.services, ChannelCount), {
      onNone: () => channels.length,
      onSome: (count) => Math.min(count.known(), channels.length)
    })
    yield* answer(json, { sponsor, formerSponsors, channels: channels.slice(0, required) }, [
      `the sponsor is ${sponsor}, with ${required} channels; other replicas follow within seconds`,
      "`signer` in /health/ready of each replica shows which keys it signs with",
      "keep the former seeds until no settlement is open under them (`settlements list`, `channels list`)",
      ...(what === "sponsor"
        ? ["then `tollkeeper sponsor drain --to ACCOUNT --reason WHY` moves the former sponsor's XLM to an account"]
        : [])
    ])
  })
).pipe(Command.withDescription("Rotate to the new seeds in the sources, without a restart; replicas follow"))

const secretsOf = (profile: Profile, variable: string): ReadonlyArray<Redacted.Redacted> =>
  Option.match(profile.secret(variable), {
    onNone: () => [],
    onSome: (secret) => splitSecrets(Redacted.value(secret))
  })

/** There is nothing to seal, or the passphrase or file is invalid. */
class SealRefused extends Schema.TaggedError<SealRefused>()("SealRefused", { message: Schema.String }) {}

const variableFlag = (name: string, what: string, value: string) =>
  Flag.String(name).pipe(defaulting(`Environment variable with ${what}`, value))

const seal = Command.make(
  "seal",
  {
    json: jsonFlag,
    state: stateFlag,
    reason: reasonFlag,
    out: Argument.String("file").pipe(Argument.withDescription("File for the sealed seeds; it must not exist")),
    sponsor: variableFlag(
      "sponsor-env",
      "the sponsor's seed, previous ones after it, comma separated",
      "SPONSOR_SECRET"
    ),
    channels: variableFlag(
      "channels-env",
      "the channels' seeds, comma separated; derived from the sponsor's when unset",
      "CHANNEL_SECRETS"
    ),
    passphrase: variableFlag("passphrase-env", "the passphrase", "SEEDS_PASSPHRASE")
  },
  Effect.fn(function* ({ channels, json, out, passphrase, reason, sponsor, state }) {
    const profile = yield* profileAt({ profile: "local", set: [] })
    const secret = profile.secret(passphrase)
    const seeds = { sponsor: secretsOf(profile, sponsor), channels: secretsOf(profile, channels), formerChannels: [] }
    const wrong = [...seeds.sponsor, ...seeds.channels].some(
      (seed) => !StrKey.isValidEd25519SecretSeed(Redacted.value(seed))
    )
    if (Option.isNone(secret) || Redacted.value(secret.value).length < passphraseLengthMin)
      return yield* new SealRefused({
        message: `set ${passphrase} to a passphrase of at least ${passphraseLengthMin} characters`
      })
    if (seeds.sponsor.length + seeds.channels.length === 0 || wrong)
      return yield* new SealRefused({ message: `set ${sponsor} or ${channels} to seeds S…, comma separated` })
    const text = sealSeeds(yield* Crypto, seeds, secret.value)
    yield* kept(state, { action: "seal", subject: out, reason })(
      Effect.mapError(
        (yield* FileSystem.FileSystem).writeFileString(out, text, { mode: 0o600, flag: "wx" }),
        () => new SealRefused({ message: `${out} already exists, or cannot be written; choose another file` })
      )
    )
    const sealed = seeds.sponsor.length + seeds.channels.length
    yield* answer(json, { file: out, sealed }, [`sealed ${sealed} seeds; networks.<id>.seeds_file: ${out}`])
  }, Effect.provide(NodeCrypto.layer))
).pipe(Command.withDescription("Seal seeds of sponsor and channels in a file, under a passphrase"))

export const keys = Command.make("keys").pipe(
  Command.withDescription("Manage keys of callers and operators, and the signing seeds"),
  Command.withSubcommands([list, reread, rotate, seal])
)
