// <Section title="Secrets" id="secrets" hint="One sentence." actions={…}> … </Section>: a part of a page, with its heading.
// <Card> … </Card>: the frame around what belongs together.
import type { ComponentChildren, VNode } from "preact";

export interface SectionProps {
  title: string;
  id?: string;
  hint?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

export function Section({ title, id, hint, actions, children }: SectionProps): VNode {
  return (
    <section id={id}>
      <div class="section-head">
        <h2>{title}</h2>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </div>
      {hint !== undefined && <p class="hint">{hint}</p>}
      {children}
    </section>
  );
}

export function Card({ children }: { children: ComponentChildren }): VNode {
  return <div class="card">{children}</div>;
}
