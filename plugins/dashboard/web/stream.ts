// Settlements as they are told, by server-sent events. A browser that loses its stream comes back by itself where it
// stopped. One that was answered and refused (the facilitator was starting, too many followed, a key was withdrawn)
// gives up; it is opened again here, ever more rarely, from where it stopped.
import { useEffect, useRef, useState } from "preact/hooks"

export type Link = "opening" | "open" | "lost" | "refused"

const types = ["recorded", "settled", "failed", "expired", "unresolved"]
const pauseFirst = 1_000
const pauseMax = 15_000

/** Follows the stream at a path for as long as it is shown; `hear` gets the data of each event. */
export const useStream = (path: string, receive: (data: string) => void): Link => {
  const [link, report] = useState<Link>("opening")
  const received = useRef(receive)
  received.current = receive
  useEffect(() => {
    let stream: EventSource
    let timer: ReturnType<typeof setTimeout> | undefined
    let pause = pauseFirst
    let last = ""
    const listen = ({ data, lastEventId }: MessageEvent<string>): void => {
      last = lastEventId
      received.current(data)
    }
    const open = (): void => {
      stream = new EventSource(last === "" ? path : `${path}?after=${last}`)
      // What follows comes again; an older cursor would have it come a third time.
      stream.addEventListener("journal.rewound", ({ lastEventId }: MessageEvent<string>) => void (last = lastEventId))
      for (const type of types) stream.addEventListener(`settlement.${type}`, listen)
      stream.onopen = () => {
        pause = pauseFirst
        report("open")
      }
      stream.onerror = () => {
        const isOver = stream.readyState === EventSource.CLOSED
        report(isOver ? "refused" : "lost")
        if (!isOver) return
        timer = setTimeout(open, pause)
        pause = Math.min(pause * 2, pauseMax)
      }
    }
    open()
    return () => {
      stream.close()
      clearTimeout(timer)
    }
  }, [path])
  return link
}

/** How the stream stands, in words. */
export const linkLabel: Readonly<Record<Link, string>> = {
  opening: "connecting…",
  open: "live",
  lost: "the facilitator does not answer; trying again…",
  refused: "the facilitator takes no more followers now; trying again…"
}
