// The startup banner: the addresses of the process's parts, and a first thing to try. A plugin adds its line while its
// Layer is built, so the printer does not depend on the plugins. Lines are for people and never parsed; they hold
// addresses and fixed sentences, no secret and no external text.
import { Context, Effect, Layer } from "effect"

export interface BannerLine {
  /** A label of the address: `ledger`. */
  readonly label: string
  /** Addresses, one per line. */
  readonly where: ReadonlyArray<string>
}

export class StartupBanner extends Context.Service<
  StartupBanner,
  {
    /** Adds a line, or an effect that returns it when the banner is printed: an address may be available only then. */
    readonly add: (line: BannerLine | Effect.Effect<BannerLine>) => Effect.Effect<void>
    /** A sentence on what to try first; printed after the lines, `{url}` in it becomes the process's own address. */
    readonly suggest: (sentence: string) => Effect.Effect<void>
    /** A command of this program to try first; how a person types it depends on how the program was installed. */
    readonly tryCommand: (command: "pay") => Effect.Effect<void>
    /** The headline of a process with a special purpose; it replaces the default. */
    readonly title: (words: string) => Effect.Effect<void>
    /** All that was added, in order. */
    readonly read: Effect.Effect<{
      readonly title: string | undefined
      readonly lines: ReadonlyArray<BannerLine>
      readonly hints: ReadonlyArray<string>
      readonly commands: ReadonlyArray<"pay">
    }>
  }
>()("tollkeeper/StartupBanner") {
  static readonly layer = Layer.sync(StartupBanner, () => {
    const lines: Array<Effect.Effect<BannerLine>> = []
    const hints: Array<string> = []
    const commands: Array<"pay"> = []
    let title: string | undefined
    return StartupBanner.of({
      add: (line) => Effect.sync(() => void lines.push(Effect.isEffect(line) ? line : Effect.succeed(line))),
      suggest: (sentence) => Effect.sync(() => void hints.push(sentence)),
      tryCommand: (command) => Effect.sync(() => void commands.push(command)),
      title: (words) => Effect.sync(() => void (title = words)),
      read: Effect.suspend(() =>
        Effect.map(Effect.all(lines), (lines) => ({ title, lines, hints: [...hints], commands: [...commands] }))
      )
    })
  })
}
