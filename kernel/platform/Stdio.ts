// The process's own stdin and stdout as lines, for a plugin that speaks a protocol over them. Whoever takes them has
// them alone: nothing else is printed to stdout from then on. The process ends when the one who took them leaves.
import { Context, type Effect, type Stream } from "effect"

/** A line that is too long to be kept: its first and last characters. */
export interface LongLine {
  readonly beginning: string
  readonly end: string
}

export class Stdio extends Context.Service<
  Stdio,
  {
    /**
     * Lines of stdin without their ends, until it ends. Of a line longer than `lengthMax` characters only both ends are
     * kept.
     */
    readonly lines: (lengthMax: number) => Stream.Stream<string | LongLine>
    /** Writes one line; resolves when it is handed over. */
    readonly write: (line: string) => Effect.Effect<void>
    /** Asks the process to end as after a signal. */
    readonly leave: Effect.Effect<void>
    /** Ends when somebody has left; never, when nobody does. */
    readonly left: Effect.Effect<void>
  }
>()("tollkeeper/platform/Stdio") {}
