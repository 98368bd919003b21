// What `start` prints when everything answers: what runs where, and what to try next, in the words that the plugins
// have added. Where a plugin has decided how the process is reached, stdout may belong to a protocol: then people read
// stderr.
import { Console, Effect } from "effect"
import { Greeting, type GreetingLine } from "../kernel/Greeting.ts"
import { ListenAt } from "../kernel/http/ListenAt.ts"

export interface GreetingOptions {
  /** None when the process listens nowhere. */
  readonly address: { readonly host: string; readonly port: number } | undefined
  /** Name of the profile. */
  readonly profile: string
  readonly stateFolder: string
}

const labelWidth = 14

const textOf = ({ label, where }: GreetingLine): ReadonlyArray<string> =>
  where.map((address, index) => `  ${(index === 0 ? label : "").padEnd(labelWidth)}${address}`)

export const greeting = Effect.fnUntraced(function* ({ address, profile, stateFolder }: GreetingOptions) {
  const { hints, lines, title } = yield* (yield* Greeting).told
  const chosen = yield* (yield* ListenAt).chosen
  const host = address?.host === "0.0.0.0" ? "127.0.0.1" : address?.host
  const at: ReadonlyArray<GreetingLine> =
    address === undefined
      ? chosen?.at === "nowhere"
        ? [{ label: "reached", where: ["over stdin and stdout"] }]
        : []
      : [{ label: title === undefined ? "facilitator" : "listens", where: [`http://${host}:${address.port}`] }]
  const text = [
    "",
    `${title ?? "Tollkeeper is ready"} (profile ${profile}; state in ${stateFolder})`,
    ...[...at, ...lines].flatMap(textOf),
    ...hints.flatMap((hint) => ["", hint]),
    ""
  ].join("\n")
  yield* chosen === undefined ? Console.log(text) : Console.error(text)
})
