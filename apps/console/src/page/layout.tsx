// <Layout title="Partners" intro="One sentence." actions={…}> … </Layout>: a page with the navigation. The title is its only h1.
// <Blank title="Log in"> … </Blank>: one without, for whoever has not logged in, and for errors.
import type { ComponentChildren, VNode } from "preact";
import { assetPath } from "../server/serve-assets.ts";
import { type NoticeTone, useView } from "./view.ts";

const sections = [
  ["/", "Overview"],
  ["/arrivals", "Arrivals"],
  ["/events", "Events"],
  ["/stuck", "Stuck"],
  ["/partners", "Partners"],
  ["/subscriptions", "Subscriptions"],
  ["/audit", "Audit"],
] as const;

interface LayoutProps {
  /** Of the page. A guest's value must not stand in it: browsers remember titles. */
  title: string;
  /** What the page is for, in a sentence. */
  intro?: ComponentChildren;
  /** Beside the title: what can be done here. */
  actions?: ComponentChildren;
  /** What the search box holds. */
  searched?: string;
  children: ComponentChildren;
}

export function Layout({ title, intro, actions, searched = "", children }: LayoutProps): VNode {
  return (
    <Document title={title}>
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <div class="frame">
        <header class="bar">
          <a class="brand" href="/">
            <img src={assetPath("icon.svg")} alt="" width="22" height="22" />
            Booking events
          </a>
          <search class="search">
            <form action="/search">
              <input
                type="search"
                name="q"
                value={searched}
                aria-label="Search by reference, event, request, e-mail address or phone"
                placeholder="Reference, id, e-mail…"
                maxLength={1_000}
                required
              />
            </form>
          </search>
          <Navigation />
          <Who />
        </header>
        <main id="main" tabIndex={-1}>
          <div class="head">
            <div>
              <h1>{title}</h1>
              {intro !== undefined && <p class="intro">{intro}</p>}
            </div>
            {actions !== undefined && <div class="actions">{actions}</div>}
          </div>
          <Notices />
          {children}
        </main>
      </div>
    </Document>
  );
}

export function Blank({ title, children }: { title: string; children: ComponentChildren }): VNode {
  return (
    <Document title={title}>
      <main class="blank">
        <p class="brand">
          <img src={assetPath("icon.svg")} alt="" width="22" height="22" />
          Booking events
        </p>
        <h1>{title}</h1>
        {children}
      </main>
    </Document>
  );
}

function Document({ title, children }: { title: string; children: ComponentChildren }): VNode {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · Booking events`}</title>
        <link rel="icon" href={assetPath("icon.svg")} type="image/svg+xml" />
        <link rel="stylesheet" href={assetPath("console.css")} />
        <script src={assetPath("console.js")} defer />
      </head>
      <body>{children}</body>
    </html>
  );
}

function Navigation(): VNode {
  const { path } = useView();
  return (
    <nav aria-label="Pages">
      <ul>
        {sections.map(([to, name]) => (
          <li>
            <a href={to} aria-current={isIn(path, to) ? "page" : undefined}>
              {name}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

const isIn = (path: string, section: string) => path === section || (section !== "/" && path.startsWith(`${section}/`));

function Who(): VNode {
  const { name, roles } = useView();
  return (
    <form class="who" method="post" action="/logout">
      <span>
        <bdi>{name}</bdi>
        <small>{roles.join(", ")}</small>
      </span>
      <button type="submit" class="button button-quiet">
        Log out
      </button>
    </form>
  );
}

function Notices(): VNode {
  return (
    <>
      {useView().notices.map(({ tone, text }) => (
        <Notice tone={tone}>
          <bdi>{text}</bdi>
        </Notice>
      ))}
    </>
  );
}

/** A sentence that must not be overlooked. Screen readers say it at once if it is a problem. */
export function Notice({ tone, children }: { tone: NoticeTone; children: ComponentChildren }): VNode {
  return (
    <p class={`notice notice-${tone}`} role={tone === "problem" ? "alert" : "status"}>
      {children}
    </p>
  );
}
