// The process's own stdin and stdout as lines, for a plugin that speaks a protocol over them. The plugin that acquires
// them has them exclusively: nothing else is printed to stdout from then on. The process ends when the peer leaves.
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
    /** Ends the process as after a signal. */
    readonly leave: Effect.Effect<void>
    /** Ends when the peer has left. */
    readonly left: Effect.Effect<void>
  }
>()("tollkeeper/platform/Stdio") {}
