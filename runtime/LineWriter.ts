// Log lines on their way to a stream: gathered and written together, because one system call a line costs a busy
// process more than making the line. A line waits for a moment at most, and for nothing when it is urgent: whatever is
// worse than Info leaves at once, with all before it. What is waiting is bounded in bytes, keeps its order, and is
// never dropped. `flush` writes what waits; the process calls it when it ends, however it ends, short of being killed.

/** Milliseconds that a line waits for others. */
const waitMillis = 20
/** Characters that wait at most. */
const waitingMax = 32_768

export interface LineWriter {
  /** `isUrgent`: written before this returns. */
  readonly line: (text: string, isUrgent?: boolean) => void
  readonly flush: () => void
}

export interface LineWriterOptions {
  /** Takes whole lines, each with its end. */
  readonly write: (lines: string) => void
  /** Calls back once, after so many milliseconds; it keeps no process alive. */
  readonly later: (flush: () => void, millis: number) => void
}

export const makeLineWriter = ({ later, write }: LineWriterOptions): LineWriter => {
  let waiting = ""
  let isAwaited = false
  const flush = () => {
    if (waiting === "") return
    const lines = waiting
    waiting = ""
    write(lines)
  }
  return {
    line: (text, isUrgent = false) => {
      waiting += `${text}\n`
      if (isUrgent || waiting.length >= waitingMax) return flush()
      if (isAwaited) return
      isAwaited = true
      later(() => {
        isAwaited = false
        flush()
      }, waitMillis)
    },
    flush
  }
}
