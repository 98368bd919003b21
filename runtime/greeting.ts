// The startup banner, printed when the process is ready: addresses, and suggestions that plugins have added. On a
// terminal it is a few lines; otherwise one JSON object, like the log. If a plugin decides how the process is reached,
// stdout may belong to a protocol, so the banner goes to stderr.
import { Console, Effect } from "effect"
import { StartupBanner, type BannerLine } from "../kernel/StartupBanner.ts"
import { ListenAt } from "../kernel/http/ListenAt.ts"
import { typed } from "./layout.ts"
import { jsonLine } from "./logging.ts"

interface GreetingOptions {
  /** None without a listener. */
  readonly address: { readonly host: string; readonly port: number } | undefined
  readonly profile: string
  readonly stateFolder: string
  /** Lines for people, or one JSON object. */
  readonly isForPeople: boolean
}

const labelWidth = 14

const textOf = ({ label, where }: BannerLine): ReadonlyArray<string> =>
  where.map((address, index) => `  ${(index === 0 ? label : "").padEnd(labelWidth)}${address}`)

/** Wildcard addresses, each with the loopback address of this machine. */
const everyAddress: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1", "[::]": "::1" }

/** The address for this machine and, when other machines reach it too, the bound one. */
const boundLines = (label: string, { host, port }: { readonly host: string; readonly port: number }) => {
  const near = everyAddress[host] ?? host
  const url = `http://${near.includes(":") && !near.startsWith("[") ? `[${near}]` : near}:${port}`
  const every = `every address of this machine (${host})`
  return [{ label, where: [url] }, ...(host in everyAddress ? [{ label: "bound to", where: [every] }] : [])]
}

/** One message, also readable as raw JSON; each address ends at a blank. */
const sentenceOf = (title: string, lines: ReadonlyArray<BannerLine>): string =>
  [`${title}:`, ...lines.map(({ label, where }) => `${label} ${where.join(" ")}`)].join(" ").concat(" ")

/** The state folder of a start without flags. */
const stateDefault = ".tollkeeper"

/**
 * Suggestions for a person's next steps: a page, a payment, and how to stop. Addresses and folders are this process's
 * own.
 */
const hintsOf = (
  { commands, hints }: { readonly commands: ReadonlyArray<"pay">; readonly hints: ReadonlyArray<string> },
  stateFolder: string,
  url: string | undefined
): ReadonlyArray<string> => {
  const state =
    stateFolder === stateDefault ? [] : ["--state", /\s/.test(stateFolder) ? `"${stateFolder}"` : stateFolder]
  const stop = `Stop it with Ctrl+C: payments in progress finish first, and its state stays in ${stateFolder}.`
  return [
    ...commands.map((command) => `Try it, in another terminal:  ${typed(command, ...state)}`),
    ...hints.map((hint) => hint.replaceAll("{url}", url ?? "the facilitator's address")),
    ...(commands.length === 0 ? [] : [stop])
  ]
}

export const greeting = Effect.fnUntraced(function* ({ address, isForPeople, profile, stateFolder }: GreetingOptions) {
  const { commands, hints, lines, title } = yield* (yield* StartupBanner).read
  const chosen = yield* (yield* ListenAt).chosen
  const at: ReadonlyArray<BannerLine> =
    address === undefined
      ? chosen?.at === "nowhere"
        ? [{ label: "reached", where: ["over stdin and stdout"] }]
        : []
      : boundLines(title === undefined ? "facilitator" : "listens", address)
  const first = `${title ?? "Tollkeeper is ready"} (profile ${profile}; state in ${stateFolder})`
  const all = [...at, ...lines]
  const toTry = hintsOf({ commands, hints }, stateFolder, at[0]?.label === "reached" ? undefined : at[0]?.where[0])
  const text = isForPeople
    ? ["", first, ...all.flatMap(textOf), ...toTry.flatMap((hint) => ["", hint]), ""].join("\n")
    : jsonLine("INFO", sentenceOf(first, all), {
        event: "ready",
        profile,
        ...Object.fromEntries(all.map(({ label, where }) => [label, where]))
      })
  yield* chosen === undefined ? Console.log(text) : Console.error(text)
})
