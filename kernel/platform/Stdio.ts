// The process's own stdin and stdout as lines, for a plugin that speaks a protocol over them. Whoever takes them has
// them alone: nothing else is printed to stdout from then on. The process ends when the one who took them leaves.
import { Context, type Effect, type Stream } from "effect"

export class Stdio extends Context.Service<
  Stdio,
  {
    /**
     * Lines of stdin without their ends, until it ends. A line longer than `lengthMax` characters comes as undefined
     * and is not kept.
     */
    readonly lines: (lengthMax: number) => Stream.Stream<string | undefined>
    /** Writes one line; resolves when it is handed over. */
    readonly write: (line: string) => Effect.Effect<void>
    /** Asks the process to end as after a signal. */
    readonly leave: Effect.Effect<void>
    /** Ends when somebody has left; never, when nobody does. */
    readonly left: Effect.Effect<void>
  }
>()("tollkeeper/platform/Stdio") {}
