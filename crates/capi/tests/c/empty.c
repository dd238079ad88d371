/* A compiler that has what it is asked for builds this. */
int main(void)
{
    return 0;
}
