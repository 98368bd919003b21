// Live settlements by server-sent events. A browser reconnects a lost stream itself, from its last event. It gives up
// on a refused one (a starting facilitator, too many subscribers, a revoked key); that is reopened here with
// exponential backoff, from the last event.
import { useEffect, useRef, useState } from "preact/hooks"
import { makeBackoff } from "./ask.ts"

export type Link = "opening" | "open" | "lost" | "refused"

const types = ["recorded", "settled", "failed", "expired", "unresolved"]

/** Subscribes to the stream at a path while the component is mounted; `receive` gets the data of each event. */
export const useStream = (path: string, receive: (data: string) => void): Link => {
  const [link, report] = useState<Link>("opening")
  const received = useRef(receive)
  received.current = receive
  useEffect(() => {
    let stream: EventSource
    let timer: ReturnType<typeof setTimeout> | undefined
    const pauses = makeBackoff()
    let last = ""
    const listen = ({ data, lastEventId }: MessageEvent<string>): void => {
      last = lastEventId
      received.current(data)
    }
    const open = (): void => {
      stream = new EventSource(last === "" ? path : `${path}?after=${last}`)
      // Later events come again; an older cursor would deliver them a third time.
      stream.addEventListener("journal.rewound", ({ lastEventId }: MessageEvent<string>) => void (last = lastEventId))
      for (const type of types) stream.addEventListener(`settlement.${type}`, listen)
      stream.onopen = () => {
        pauses.reset()
        report("open")
      }
      stream.onerror = () => {
        const isOver = stream.readyState === EventSource.CLOSED
        report(isOver ? "refused" : "lost")
        if (!isOver) return
        timer = setTimeout(open, pauses.next())
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

export const linkLabel: Readonly<Record<Link, string>> = {
  opening: "connecting…",
  open: "live",
  lost: "the facilitator does not answer; trying again…",
  refused: "too many live views are open; trying again…"
}
